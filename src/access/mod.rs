//! Who owns what, and who sees it.
//!
//! Every function of the extension first looks up here what its caller may see, and then works on the tables as the
//! engine. The views use the same look-up, once per query.

mod owners;

pub use owners::{
    Actor, Visible, WORKER, caller, caller_name, id_of_role, may_run_sql, name_of,
    names_are_outdated, own_id, own_id_if_any, owner_ids_of, owner_to_act_as, refresh_names,
    role_of, sees_all, session_name, visible,
};
