//! The committed corpus: `fuzz/corpus/<target>/<file>`.

use crate::input::Input;
use crate::random::hash;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of all corpora.
pub fn folder() -> PathBuf {
    match std::env::var_os("PG_RECUR_FUZZ_CORPUS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"),
    }
}

/// The inputs of a target with the names of their files, in the order of names.
pub fn read(target: &str) -> io::Result<Vec<(String, Input)>> {
    let folder = folder().join(target);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        inputs.push((name, Input::from_file(&fs::read_to_string(&path)?)));
    }
    inputs.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(inputs)
}

/// Stores an input under a name that begins with `prefix`, and returns its path.
pub fn store(target: &str, prefix: &str, input: &Input) -> io::Result<PathBuf> {
    let folder = folder().join(target);
    fs::create_dir_all(&folder)?;
    let contents = input.to_file();
    let path = folder.join(format!("{prefix}{:016x}", hash(contents.as_bytes())));
    fs::write(&path, contents)?;
    Ok(path)
}
