//! report.html in a real headless Chromium.

use crate::chromium::Chromium;
use crate::{rendered, sample};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The sample's page as a file.
fn page_file(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("report.html");
    std::fs::write(&path, rendered("html", &sample::findings())).unwrap();
    path
}

#[test]
fn snapshots_for_the_eye() {
    let Ok(out) = std::env::var("SHOTS") else { return };
    let Some(mut browser) = Chromium::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = page_file(&folder);
    std::fs::copy(&path, format!("{out}/report.html")).unwrap();
    std::fs::write(format!("{out}/report.txt"), rendered("txt", &sample::findings())).unwrap();
    for (name, scheme, width) in [("light", "light", 1200), ("dark", "dark", 1200), ("phone", "light", 360)] {
        browser.prefer(scheme);
        browser.size(width, 900, 1.0);
        browser.open(&path);
        let height = browser.evaluate("document.documentElement.scrollHeight").as_u64().unwrap() as u32;
        browser.size(width, height, if width < 500 { 1.5 } else { 1.0 });
        std::thread::sleep(std::time::Duration::from_millis(1500));
        let shot = browser.call("Page.captureScreenshot", json!({"format": "png"}));
        std::fs::write(format!("{out}/{name}.b64"), shot["data"].as_str().unwrap()).unwrap();
        println!("{name}: height {height}, {:?} {:?}", browser.complaints(), browser.requests());
    }
    browser.size(1200, 900, 1.0);
    browser.prefer("dark");
    browser.open(&path);
    let pdf: Value = browser.call(
        "Page.printToPDF",
        json!({"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true, "printBackground": true}),
    );
    std::fs::write(format!("{out}/print.b64"), pdf["data"].as_str().unwrap()).unwrap();
}
