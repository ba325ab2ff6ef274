//! Who owns what, and who sees it.
//!
//! Every function of the extension first learns here what its caller may see, and then works on the tables as the
//! engine. The views ask the same questions, once per query.

mod owners;

pub use owners::{
    Visible, caller, caller_name, id_of_role, own_id, owner_ids_of, session_name, visible,
};
