//! Reading saved results.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;

use super::exit::Invalid;
use crate::outcome::{Report, SCHEMA_VERSION};

/// Reads a `report.json`, or that of a report folder. Beside it, the file that was read.
///
/// # Errors
/// [`Invalid`] if there is none, or it is not a report of this version; the message names the file and the way out.
pub(super) fn load(path: &Path) -> anyhow::Result<(PathBuf, Report)> {
    let file = if path.is_dir() { path.join("report.json") } else { path.to_owned() };
    let invalid = |why: String| Invalid(format!("{}: {why}", file.display()));
    let text = fs::read(&file).map_err(|error| {
        let missing = error.kind() == io::ErrorKind::NotFound;
        let hint = if missing {
            "; results are saved by `floodlab run SCENARIO -o FOLDER` or `--export-json FILE`"
        } else {
            ""
        };
        invalid(format!("cannot read the result: {error}{hint}"))
    })?;
    let unlike = "not a result of floodlab; give a report.json, or the folder that it is in";
    let Version { schema_version } =
        serde_json::from_slice(&text).map_err(|error| invalid(format!("{unlike} ({error})")))?;
    if schema_version != SCHEMA_VERSION {
        let why = format!(
            "a result of schema version {schema_version}, and this floodlab reads version {SCHEMA_VERSION}; run the \
             scenario again, or use the floodlab that made it"
        );
        return Err(invalid(why).into());
    }
    let report = serde_json::from_slice(&text).map_err(|error| invalid(format!("{unlike} ({error})")))?;
    Ok((file, report))
}

/// All that is known of a result before its version is.
#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}
