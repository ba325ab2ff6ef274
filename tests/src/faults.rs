//! Faults that a test brings about.

use crate::session::Session;

/// From now on each of these writes (`INSERT`, `UPDATE`) to this table fails as on a full disk.
#[track_caller]
pub fn fill_disk(session: &mut Session, write: &str, table: &str) {
    session.batch(&format!(
        "CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS
             $$BEGIN RAISE EXCEPTION 'no room left' USING ERRCODE = 'disk_full'; END$$;
         CREATE TRIGGER fail BEFORE {write} ON {table} FOR EACH ROW EXECUTE FUNCTION public.fail()"
    ));
}

/// There is room again.
#[track_caller]
pub fn free_disk(session: &mut Session) {
    session.batch("DROP FUNCTION public.fail() CASCADE");
}
