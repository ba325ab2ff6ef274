//! What a setting is: a name, a default, bounds, and who may set it.

use super::stored::{self, Value};
use crate::pg::setting::{self, Source};
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};
use std::ffi::{CStr, CString};

/// Who decides a setting for the server.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum SetBy {
    /// The configuration file, on reload.
    Reload,
    /// The same, and a superuser for a session or a database.
    Superuser,
    /// The same, and any role for its own sessions.
    AnyRole,
}

/// Who decides it besides.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum DecidedIn {
    Server,
    /// A database, by a row of `recur_internal.settings`.
    Database,
    /// A database, and differently for each of its namespaces.
    Namespace,
}

/// What all settings have.
pub struct Setting {
    pub name: &'static CStr,
    short: &'static CStr,
    long: &'static CStr,
    set_by: SetBy,
    flags: GucFlags,
    pub decided_in: DecidedIn,
    /// A database may only make it stricter than the server: what that means, for an error message.
    pub limit: Option<&'static str>,
}

impl Setting {
    const fn new(name: &'static CStr, set_by: SetBy) -> Setting {
        Setting {
            name,
            short: c"",
            long: c"",
            set_by,
            flags: GucFlags::empty(),
            decided_in: DecidedIn::Server,
            limit: None,
        }
    }

    fn context(&self) -> GucContext {
        match self.set_by {
            SetBy::Reload => GucContext::Sighup,
            SetBy::Superuser => GucContext::Suset,
            SetBy::AnyRole => GucContext::Userset,
        }
    }

    /// The name as people write it.
    pub fn name(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }

    /// What the database says, or one of its namespaces. What is set for a role or a session comes first.
    pub fn stored(&self, namespace: Option<&str>) -> Option<Value> {
        let value = stored::value(self.name, namespace)?;
        let is_narrower =
            self.set_by == SetBy::AnyRole && setting::source(self.name) == Source::Narrower;
        (!is_narrower).then_some(value)
    }
}

/// A setting of any kind.
pub trait Definition: Sync {
    fn setting(&'static self) -> &'static Setting;
    /// Makes it a setting of the server.
    fn define(&'static self);
    /// A value that the server accepts, as a value of this kind.
    fn read(&'static self, value: &CStr) -> Option<Value>;
    /// May a database have this value, given the server's?
    fn is_within_limit(&'static self, value: &Value) -> bool;
}

macro_rules! kind {
    ($name:ident) => {
        impl $name {
            /// The lines of the doc comment.
            pub const fn described(mut self, short: &'static str, long: &'static str) -> $name {
                self.setting.short = line(short);
                self.setting.long = line(long);
                self
            }

            /// Each database may decide it for itself, however it likes.
            pub const fn per_database(mut self) -> $name {
                self.setting.decided_in = DecidedIn::Database;
                self
            }

            /// Each database, and each of its namespaces.
            #[allow(dead_code, reason = "not for each kind")]
            pub const fn per_namespace(mut self) -> $name {
                self.setting.decided_in = DecidedIn::Namespace;
                self
            }
        }
    };
}

/// On or off.
pub struct Switch {
    setting: Setting,
    guc: GucSetting<bool>,
}
kind!(Switch);

/// A whole number in the setting's unit.
pub struct Number {
    setting: Setting,
    guc: GucSetting<i32>,
    bounds: (i32, i32),
    stricter: fn(i32, i32) -> i32,
}
kind!(Number);

pub struct Text {
    setting: Setting,
    guc: GucSetting<Option<CString>>,
    default: &'static CStr,
    check: pg_sys::GucStringCheckHook,
}
kind!(Text);

impl Switch {
    pub const fn new(name: &'static CStr, set_by: SetBy, default: bool) -> Switch {
        Switch {
            setting: Setting::new(name, set_by),
            guc: GucSetting::<bool>::new(default),
        }
    }

    /// Each database may switch it off, and not on where the server has it off.
    pub const fn off_per_database(mut self) -> Switch {
        self.setting.limit = Some("and a database can only switch it off");
        self.per_database()
    }

    /// The server's value.
    pub fn of_server(&self) -> bool {
        self.guc.get()
    }

    pub fn get(&self) -> bool {
        self.of(None)
    }

    pub fn of(&self, namespace: Option<&str>) -> bool {
        match self.setting.stored(namespace) {
            Some(Value::Switch(value)) if self.setting.limit.is_some() => value && self.guc.get(),
            Some(Value::Switch(value)) => value,
            _ => self.guc.get(),
        }
    }
}

impl Number {
    pub const fn new(
        name: &'static CStr,
        set_by: SetBy,
        default: i32,
        bounds: (i32, i32),
    ) -> Number {
        Number {
            setting: Setting::new(name, set_by),
            guc: GucSetting::<i32>::new(default),
            bounds,
            stricter: |stored, _| stored,
        }
    }

    pub const fn unit(mut self, unit: GucFlags) -> Number {
        self.setting.flags = unit;
        self
    }

    /// Each database may have less, and not more.
    pub const fn at_most_per_database(mut self) -> Number {
        self.stricter = |stored, server| stored.min(server);
        self.setting.limit = Some("and a database can only have less");
        self.per_database()
    }

    /// Each database may have more, and not less.
    pub const fn at_least_per_database(mut self) -> Number {
        self.stricter = |stored, server| stored.max(server);
        self.setting.limit = Some("and a database can only have more");
        self.per_database()
    }

    /// Each database may have less, and not more; 0 stands for any number.
    pub const fn at_most_or_0_per_database(mut self) -> Number {
        self.stricter = |stored, server| match (stored, server) {
            (0, other) | (other, 0) => other,
            (stored, server) => stored.min(server),
        };
        self.setting.limit = Some("and a database can only have less");
        self.per_database()
    }

    pub fn get(&self) -> i32 {
        self.of(None)
    }

    pub fn of(&self, namespace: Option<&str>) -> i32 {
        match self.setting.stored(namespace) {
            Some(Value::Number(value)) => (self.stricter)(value, self.guc.get()),
            _ => self.guc.get(),
        }
    }
}

impl Text {
    pub const fn new(
        name: &'static CStr,
        set_by: SetBy,
        default: &'static CStr,
        check: pg_sys::GucStringCheckHook,
    ) -> Text {
        Text {
            setting: Setting::new(name, set_by),
            guc: GucSetting::<Option<CString>>::new(Some(default)),
            default,
            check,
        }
    }

    pub fn get(&self) -> String {
        self.of(None)
    }

    pub fn of(&self, namespace: Option<&str>) -> String {
        if let Some(Value::Text(value)) = self.setting.stored(namespace) {
            return value;
        }
        match self.guc.get() {
            Some(value) => value.to_string_lossy().into_owned(),
            None => self.default.to_string_lossy().into_owned(),
        }
    }
}

impl Definition for Switch {
    fn setting(&'static self) -> &'static Setting {
        &self.setting
    }

    fn define(&'static self) {
        let about = &self.setting;
        let (context, flags) = (about.context(), about.flags);
        GucRegistry::define_bool_guc(
            about.name,
            about.short,
            about.long,
            &self.guc,
            context,
            flags,
        );
    }

    fn read(&'static self, value: &CStr) -> Option<Value> {
        setting::boolean(value).map(Value::Switch)
    }

    fn is_within_limit(&'static self, value: &Value) -> bool {
        self.setting.limit.is_none() || self.guc.get() || *value == Value::Switch(false)
    }
}

impl Definition for Number {
    fn setting(&'static self) -> &'static Setting {
        &self.setting
    }

    fn define(&'static self) {
        let about = &self.setting;
        GucRegistry::define_int_guc(
            about.name,
            about.short,
            about.long,
            &self.guc,
            self.bounds.0,
            self.bounds.1,
            about.context(),
            about.flags,
        );
    }

    fn read(&'static self, value: &CStr) -> Option<Value> {
        setting::number(self.setting.name, value).map(Value::Number)
    }

    fn is_within_limit(&'static self, value: &Value) -> bool {
        match *value {
            Value::Number(value) => (self.stricter)(value, self.guc.get()) == value,
            _ => false,
        }
    }
}

impl Definition for Text {
    fn setting(&'static self) -> &'static Setting {
        &self.setting
    }

    fn define(&'static self) {
        let about = &self.setting;
        // SAFETY: the hook, if there is one, is guarded against panics.
        unsafe {
            GucRegistry::define_string_guc_with_hooks(
                about.name,
                about.short,
                about.long,
                &self.guc,
                about.context(),
                about.flags,
                self.check,
                None,
                None,
            );
        }
    }

    fn read(&'static self, value: &CStr) -> Option<Value> {
        value.to_str().ok().map(|text| Value::Text(text.to_owned()))
    }

    fn is_within_limit(&'static self, _value: &Value) -> bool {
        true
    }
}

/// A doc comment without the blank it begins with.
const fn line(comment: &'static str) -> &'static CStr {
    let bytes = comment.as_bytes();
    let text = match bytes[0] {
        b' ' => bytes.split_at(1).1,
        _ => bytes,
    };
    match CStr::from_bytes_with_nul(text) {
        Ok(text) => text,
        Err(_) => panic!("a description holds a zero byte"),
    }
}
