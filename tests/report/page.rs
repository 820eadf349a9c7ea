//! report.html in a real headless Chromium.

use crate::report::chromium::Chromium;
use crate::report::{ageing, hostile, rendered, sample};
use pgstrata::analyse::findings::Findings;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A page as a file, opened in a browser with a view of this width; `None` without a browser.
pub struct Opened {
    pub browser: Chromium,
    pub path: PathBuf,
    pub _folder: tempfile::TempDir,
}

pub fn open(findings: &Findings, width: u32, scheme: &str) -> Option<Opened> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    std::fs::write(&path, rendered("html", findings)).unwrap();
    for _ in 0..3 {
        let mut browser = Chromium::start()?;
        browser.prefer(scheme);
        browser.size(width, 900);
        browser.open(&path);
        if browser.draws() {
            return Some(Opened { browser, path, _folder: folder });
        }
    }
    panic!("three browsers drew nothing of {}", path.display());
}

/// Opens everything folded, so that every chart is drawn, and scrolls through the whole page.
pub const SCROLL_THROUGH: &str = "(async () => {
    document.querySelectorAll('main details').forEach(one => { one.open = true; });
    for (let y = 0; y < document.documentElement.scrollHeight; y += 400) {
        window.scrollTo({top: y, behavior: 'instant'});
        await new Promise((done, fail) => {
            requestAnimationFrame(() => setTimeout(done, 10));
            setTimeout(() => fail(new Error(`no frame at ${y} px`)), 60000);
        });
    }
})()";

/// For each chart: its kind and how many different colours its middle has; 0 for one that was not drawn.
pub const COLOURS: &str = "Array.from(document.querySelectorAll('.chart')).map(holder => {
    const canvas = holder.querySelector('canvas');
    const kind = holder.dataset.chart || 'telemetry';
    if (!canvas || !echarts.getInstanceByDom(holder)) return [kind, 0];
    const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return [kind, new Set(pixels).size];
})";

#[test]
fn every_chart_is_drawn_without_a_complaint_or_a_request() {
    let findings = Findings { ageing: ageing::figures(), ..sample::findings() };
    let Some(Opened { mut browser, .. }) = open(&findings, 1200, "light") else { return };
    browser.evaluate(SCROLL_THROUGH);
    let colours = browser.evaluate(COLOURS);
    let charts: Vec<(&str, u64)> =
        colours.as_array().unwrap().iter().map(|one| (one[0].as_str().unwrap(), one[1].as_u64().unwrap())).collect();
    for (kind, least) in
        [("ranking", 6), ("clients", 1), ("seconds", 1), ("latency", 1), ("waits", 1), ("telemetry", 6), ("ageing", 2)]
    {
        assert!(charts.iter().filter(|(found, _)| *found == kind).count() >= least, "{kind}: {charts:?}");
    }
    let drawn = browser.evaluate(
        "Array.from(document.querySelectorAll('[data-chart=ageing]')).map(holder => {
            const option = echarts.getInstanceByDom(holder).getOption();
            const whiskers = option.series.filter(one => one.type === 'custom').map(one => one.data.length);
            return [holder.dataset.figure, whiskers, Math.round(1000 * option.yAxis[0].min)];
        })",
    );
    // The second amount has one trial and no interval; the axis of a quotient does not begin at 0.
    assert_eq!(drawn, json!([["scan", [2, 2], 0], ["space used / logical size", [2, 2], 950]]));
    // An empty canvas has one colour; axes and a line with their soft edges have dozens.
    assert!(charts.iter().all(|(_, colours)| *colours > 20), "{charts:?}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.requests(), Vec::<String>::new());
}

#[test]
fn a_click_adds_or_removes_an_overlaid_case() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "light") else { return };
    browser.evaluate(SCROLL_THROUGH);
    let lines = |browser: &mut Chromium, chart: &str| {
        let option = format!("echarts.getInstanceByDom(document.querySelector('[data-chart={chart}]')).getOption()");
        browser.evaluate(&format!("{option}.series.filter(one => one.type === 'line').length")).as_u64().unwrap()
    };
    let chip = |stack: &str| format!("#seconds button[data-id='{}']", sample::case_id(stack, 16));
    // To begin with: the three that survive a power cut, each with a line for its rate and one for its slowest.
    assert_eq!((lines(&mut browser, "seconds"), lines(&mut browser, "latency")), (6, 3));
    browser.click(&chip("xfs"));
    browser.click(&chip("btrfs"));
    assert_eq!((lines(&mut browser, "seconds"), lines(&mut browser, "latency")), (2, 1));
    browser.click(&chip("tmpfs"));
    assert_eq!((lines(&mut browser, "seconds"), lines(&mut browser, "latency")), (4, 2));
    browser.click("#seconds button[data-id='3']");
    assert_eq!(lines(&mut browser, "seconds"), 8);
    let pressed = "Array.from(document.querySelectorAll('#latency button[aria-pressed=true]')).map(b => b.dataset.id)";
    assert_eq!(browser.evaluate(pressed), json!([sample::case_id("ext4", 16), sample::case_id("tmpfs", 16)]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn stalls_stay_visible_second_by_second() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "light") else { return };
    browser.evaluate(SCROLL_THROUGH);
    let marks = "echarts.getInstanceByDom(document.querySelector('[data-chart=seconds]')).getOption().series
        .filter(one => one.type === 'scatter').map(one => one.data.map(at => at[0])).filter(at => at.length)";
    assert_eq!(browser.evaluate(marks), json!([[30, 31, 32, 33, 48]]));
    // Its one operation of 4213 ms stands between seconds without any: a dot, as no line reaches it.
    let dots = "echarts.getInstanceByDom(document.querySelector('[data-chart=seconds]')).getOption().series
        .flatMap(one => one.data).filter(at => at.symbol === 'circle').map(at => at.value)";
    assert_eq!(browser.evaluate(dots), json!([[32, 4213]]));
}

#[test]
fn a_zoom_stays_when_another_case_is_chosen() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "light") else { return };
    browser.evaluate(SCROLL_THROUGH);
    let chart = "echarts.getInstanceByDom(document.querySelector('[data-chart=seconds]'))";
    let view = format!(
        "(() => {{ const o = {chart}.getOption(); return [o.dataZoom[0].start, o.dataZoom[0].end, o.xAxis[1].interval]; }})()"
    );
    assert_eq!(browser.evaluate(&view), json!([0, 100, 10]));
    browser.evaluate(&format!("{chart}.dispatchAction({{type: 'dataZoom', start: 25, end: 50}})"));
    assert_eq!(browser.evaluate(&view), json!([25, 50, 2]));
    browser.click(&format!("#seconds button[data-id='{}']", sample::case_id("tmpfs", 16)));
    assert_eq!(browser.evaluate(&view), json!([25, 50, 2]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_csv_button_yields_the_table_in_full_precision() {
    let findings = sample::findings();
    let Some(Opened { mut browser, .. }) = open(&findings, 1200, "light") else { return };
    browser.click("button.csv[data-table='ranking-1']");
    let path = browser.downloads().join("which-filesystem-ranking-1.csv");
    let csv = browser.downloaded(&path);
    let mut lines = csv.split("\r\n");
    assert_eq!(
        lines.next().unwrap(),
        "ranking,measure,class,rank in class,case,label,rate (tps),low (tps),high (tps),trials used,\
         least (tps),most (tps),trials,baseline,ratio,ratio low,ratio high,outcome,smallest detectable ratio,comparison,\
         caveat,p99 (ms),p99 low (ms),p99 high (ms),p99 trials,durability reason,verdict"
    );
    let first = &findings.rankings[0].classes[0].rows[0];
    let rate = first.rate;
    let start = format!(
        "\"tpcb, clients=16\",transactions,flushed,1,{},xfs,{},{},{},3,",
        first.case,
        rate.value,
        rate.low.unwrap(),
        rate.high.unwrap()
    );
    assert!(lines.next().unwrap().starts_with(&start), "{csv}");
    assert_eq!(lines.clone().filter(|line| line.contains(",volatile,")).count(), 1);
    assert_eq!(lines.last(), Some(""));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn dark_follows_the_system_and_the_button_turns_it() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "dark") else { return };
    let background = "getComputedStyle(document.body).backgroundColor";
    let line =
        "(() => { const o = echarts.getInstanceByDom(document.querySelector('[data-chart=seconds]')).getOption();
        return o.textStyle.color; })()";
    browser.evaluate(SCROLL_THROUGH);
    let (dark, dark_text) = (browser.evaluate(background), browser.evaluate(line));
    browser.click("#theme");
    let (light, light_text) = (browser.evaluate(background), browser.evaluate(line));
    assert_eq!((dark, light), (json!("rgb(20, 24, 27)"), json!("rgb(253, 253, 252)")));
    assert_ne!(dark_text, light_text);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_phone_scrolls_tables_but_never_the_page() {
    for findings in [sample::findings(), hostile::hostile()] {
        let Some(Opened { mut browser, .. }) = open(&findings, 360, "light") else { return };
        browser.evaluate(SCROLL_THROUGH);
        let widest = "[document.documentElement.scrollWidth, document.body.scrollWidth]";
        assert_eq!(browser.evaluate(widest), json!([360, 360]));
        let cut =
            "Array.from(document.querySelectorAll('.chart')).filter(c => c.getBoundingClientRect().right > 360.5)";
        assert_eq!(browser.evaluate(&format!("{cut}.length")), json!(0));
    }
}

#[test]
fn paper_gets_light_charts_and_what_is_open() {
    let Some(Opened { mut browser, path, .. }) = open(&sample::findings(), 1200, "dark") else { return };
    let params = json!({"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true, "printBackground": true});
    let open_parts = "Array.from(document.querySelectorAll('main > details[open]')).map(one => one.id)";
    let before = browser.evaluate(open_parts);
    let folded = "document.querySelector('main > details:not([open])') !== null";
    assert!(before[0].is_string() && browser.evaluate(folded) == json!(true), "{before}");
    // What the page looked like when it was printed: noted by itself, after its own preparation.
    browser.evaluate(&format!(
        "window.addEventListener('beforeprint', () => {{ window.printed = [
            {open_parts},
            getComputedStyle(document.documentElement).getPropertyValue('--bg').trim(),
            Array.from(document.querySelectorAll('.chart')).filter(one => !one.closest('details:not([open])'))
                .every(one => one.querySelector('canvas'))] }})"
    ));
    let pdf: Value = browser.call("Page.printToPDF", params);
    assert_eq!(browser.evaluate("window.printed"), json!([before, "#ffffff", true]));
    // Base64 of `%PDF-`, and of several pages' worth of it.
    let pdf = pdf["data"].as_str().unwrap();
    assert!(pdf.starts_with("JVBERi0") && pdf.len() > 100_000, "{} bytes", pdf.len());
    let after = format!("[{open_parts}, getComputedStyle(document.body).backgroundColor]");
    assert_eq!(browser.evaluate(&after), json!([before, "rgb(20, 24, 27)"]), "{}", path.display());
}

#[test]
fn a_folded_ranking_gets_its_new_colours_when_unfolded() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "light") else { return };
    let fold = |open: bool| {
        format!(
            "(async () => {{ const one = document.querySelector('#rankings > details.more'); one.open = {open}; \
             one.scrollIntoView({{behavior: 'instant'}}); await new Promise(done => setTimeout(done, 300)); \
             const chart = echarts.getInstanceByDom(one.querySelector('.chart')); \
             return chart ? chart.getOption().textStyle.color : null; }})()"
        )
    };
    assert_eq!(browser.evaluate(&fold(false)), Value::Null, "nothing is drawn that nobody can see");
    let light = browser.evaluate(&fold(true));
    browser.evaluate(&fold(false));
    browser.click("#theme");
    let dark = browser.evaluate(&fold(true));
    assert!(light.is_string() && dark.is_string() && light != dark, "{light} {dark}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn telemetry_shows_the_trial_that_is_chosen() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "light") else { return };
    let choose = format!(
        "(() => {{ const chip = id => document.querySelector(`#telemetry .chips button[data-id='${{id}}']`); \
         const before = document.querySelector('#telemetry .chips button[aria-pressed=true]').dataset.id; \
         chip('{}').click(); chip(before).click(); const t = document.getElementById('telemetry-trial'); t.value = '2'; t.dispatchEvent(new Event('change')); \
         return document.querySelector('#telemetry-charts .note').textContent; }})()",
        sample::case_id("btrfs", 4)
    );
    let note = browser.evaluate(&choose);
    assert!(note.as_str().unwrap().starts_with("btrfs tpcb clients=4, trial 2: 351 operations a second"), "{note}");
    browser.evaluate(SCROLL_THROUGH);
    let empty = format!("{COLOURS}.filter(one => one[0] === 'telemetry' && one[1] < 20).length");
    assert_eq!(browser.evaluate(&empty), json!(0));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn hostile_names_are_shown_and_do_nothing() {
    let findings = hostile::hostile();
    let Some(Opened { mut browser, .. }) = open(&findings, 1200, "light") else { return };
    browser.evaluate(SCROLL_THROUGH);
    browser.click("#seconds .chips button");
    // Tooltips, the one place where a chart makes elements.
    browser.evaluate(
        "Array.from(document.querySelectorAll('.chart')).forEach(holder => {
            const chart = echarts.getInstanceByDom(holder);
            chart.dispatchAction({type: 'showTip', seriesIndex: 0, dataIndex: 0});
            chart.dispatchAction({type: 'showTip', seriesIndex: 1, dataIndex: 0});
            chart.dispatchAction({type: 'showTip', x: holder.clientWidth / 2, y: 60});
        })",
    );
    assert_eq!(
        browser.evaluate("[window.hacked === undefined, document.querySelectorAll('img, svg, iframe').length]"),
        json!([true, 0])
    );
    assert_eq!(
        browser.evaluate("document.querySelector('h1').textContent"),
        json!(hostile::shown(&findings.answer.answer))
    );
    assert_eq!(browser.evaluate("document.querySelectorAll('script').length"), json!(3));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.requests(), Vec::<String>::new());
}

#[test]
fn a_run_without_measurements_still_has_its_page() {
    let mut findings = sample::findings();
    findings.rankings.clear();
    findings.trials.clear();
    for case in &mut findings.cases {
        (case.measures, case.strata, case.backend_time, case.steadiness) = (vec![], None, None, None);
    }
    let Some(Opened { mut browser, .. }) = open(&findings, 1200, "light") else { return };
    browser.evaluate(SCROLL_THROUGH);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let text = browser.evaluate("document.querySelector('main').innerText");
    for part in ["nothing to rank", "no space left on device"] {
        assert!(text.as_str().unwrap().contains(part), "{part}");
    }
}
