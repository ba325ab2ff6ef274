//! What users see of a dispatch where NULL is stored: the defaults of an action.

use crate::pg::{columns, interval};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use recur_core::action::{Column, DefaultValue, Interval as Span};

/// `recur_internal.default_lease()`.
#[pg_extern(sql = false)]
fn default_lease() -> Interval {
    interval::from_parts(match Column::Lease.spec().default {
        DefaultValue::Interval(span) => span,
        _ => Span::ZERO,
    })
}

/// `recur_internal.shown_column(name)`: in the views, the table has the alias `d`.
#[pg_extern(sql = false)]
fn shown_column(name: &str) -> String {
    columns::shown("d", name)
}
