//! Charts over time in a real headless Chromium: one zoom and one pointer for all of them.

use crate::report::chromium::Chromium;
use crate::report::page::{Opened, SCROLL_THROUGH, open};
use crate::report::sample;
use serde_json::{Value, json};

/// The seconds that each drawn chart over time shows, rounded: [from, to].
const VIEWS: &str =
    "Array.from(document.querySelectorAll('.chart.time')).filter(holder => echarts.getInstanceByDom(holder))
    .map(holder => {
        const o = echarts.getInstanceByDom(holder).getOption(), x = o.xAxis[0];
        const zoom = (o.dataZoom || [])[0];
        return (zoom ? [zoom.start / 100 * x.max, zoom.end / 100 * x.max] : [x.min, x.max]).map(Math.round);
    })";

/// Where the plot of the first chart of a selector lies in the view: left, width, a height inside.
fn plot(browser: &mut Chromium, selector: &str) -> (f64, f64, f64) {
    let find = format!(
        "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
         const r = e.getBoundingClientRect(), g = echarts.getInstanceByDom(e).getOption().grid[0]; \
         return [r.x + g.left, r.width - g.left - g.right, r.y + 60]; }})()"
    );
    let at = browser.evaluate(&find);
    (at[0].as_f64().unwrap(), at[1].as_f64().unwrap(), at[2].as_f64().unwrap())
}

fn mouse(browser: &mut Chromium, kind: &str, x: f64, y: f64, clicks: u32) {
    let buttons = u32::from(kind == "mouseMoved");
    let params = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": clicks});
    browser.call("Input.dispatchMouseEvent", params);
}

/// Drags over a share of the plot of a chart.
fn drag(browser: &mut Chromium, selector: &str, from: f64, to: f64) {
    let (left, width, y) = plot(browser, selector);
    mouse(browser, "mousePressed", left + width * from, y, 1);
    mouse(browser, "mouseMoved", left + width * (from + to) / 2.0, y, 0);
    mouse(browser, "mouseMoved", left + width * to, y, 0);
    mouse(browser, "mouseReleased", left + width * to, y, 1);
}

fn views(browser: &mut Chromium) -> Vec<Value> {
    browser.evaluate(SCROLL_THROUGH);
    browser.evaluate(VIEWS).as_array().unwrap().clone()
}

#[test]
fn dragging_over_one_chart_zooms_all_charts_over_time() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "light") else { return };
    let whole = views(&mut browser);
    assert!(whole.len() > 12 && whole.iter().all(|view| *view == json!([0, 60])), "{whole:?}");
    drag(&mut browser, ".small-grid .chart", 0.25, 0.5);
    let zoomed = views(&mut browser);
    assert_eq!(zoomed.len(), whole.len());
    assert!(zoomed.iter().all(|view| *view == json!([15, 30])), "{zoomed:?}");
    // From the large chart the other way, into what is zoomed already: 15 + 15 * 0.2 to 15 + 15 * 0.8.
    drag(&mut browser, "[data-chart=seconds]", 0.8, 0.2);
    let zoomed = views(&mut browser);
    assert!(zoomed.iter().all(|view| *view == json!([18, 27])), "{zoomed:?}");
    let ranges = "Array.from(document.querySelectorAll('.zoom-range')).map(one => one.textContent)";
    assert_eq!(browser.evaluate(ranges), json!(["Zoomed to 18 s – 27 s", "Zoomed to 18 s – 27 s"]));
    browser.click("#telemetry .zoom-out");
    let again = views(&mut browser);
    assert!(again.iter().all(|view| *view == json!([0, 60])), "{again:?}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_range_bar_and_a_double_click_zoom_small_charts() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "light") else { return };
    views(&mut browser);
    browser.evaluate(
        "echarts.getInstanceByDom(document.querySelector('[data-chart=seconds]')).dispatchAction({type: 'dataZoom', start: 50, end: 75})",
    );
    let zoomed = views(&mut browser);
    assert!(zoomed.iter().all(|view| *view == json!([30, 45])), "{zoomed:?}");
    let (left, width, y) = plot(&mut browser, ".wide-charts .chart");
    for clicks in [1, 2] {
        mouse(&mut browser, "mousePressed", left + width / 2.0, y, clicks);
        mouse(&mut browser, "mouseReleased", left + width / 2.0, y, clicks);
    }
    let again = views(&mut browser);
    assert!(again.iter().all(|view| *view == json!([0, 60])), "{again:?}");
}

#[test]
fn the_pointer_shows_values_in_all_charts() {
    let findings = sample::findings();
    let Some(Opened { mut browser, .. }) = open(&findings, 1200, "light") else { return };
    views(&mut browser);
    let (left, width, y) = plot(&mut browser, ".small-grid .chart");
    mouse(&mut browser, "mouseMoved", left + width * 0.5 - 1.0, y, 0);
    let pointers =
        "Array.from(document.querySelectorAll('.chart.time')).map(one => !one.querySelector('.time-pointer').hidden)";
    let shown = browser.evaluate(pointers);
    assert!(shown.as_array().unwrap().iter().all(|shown| *shown == json!(true)), "{shown}");
    let now = browser.evaluate("document.querySelector('.small-grid h4 .now').textContent");
    let first = findings.trials.iter().find(|trial| trial.case == sample::case_id("xfs", 16)).unwrap();
    let rate = first.throughput.as_ref().unwrap().min[29].unwrap().round();
    assert_eq!(now, json!(format!("second 30{rate}")));
    let heat = browser.evaluate("document.querySelector('.wide-charts .now').textContent");
    assert!(
        heat.as_str().unwrap().starts_with("second 30: ") && heat.as_str().unwrap().contains("operations"),
        "{heat}"
    );
    // No box covers a small chart.
    assert_eq!(browser.evaluate("document.querySelectorAll('.small .tip').length"), json!(0));
    mouse(&mut browser, "mouseMoved", left + width * 0.51, y, 0);
    let empty = browser.evaluate("document.querySelector('.wide-charts .now').textContent");
    assert_eq!(empty, json!("second 31: no operation"));
}

#[test]
fn a_legend_hides_lines_of_cases_sharing_a_chart() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "light") else { return };
    views(&mut browser);
    let lines = |browser: &mut Chromium, title: &str| {
        let find = format!(
            "(() => {{ const one = Array.from(document.querySelectorAll('.small')).find(s => s.querySelector('h4').textContent.startsWith({title:?})); \
             return echarts.getInstanceByDom(one.querySelector('.chart')).getOption().series.filter(s => s.type === 'line').length; }})()"
        );
        browser.evaluate(&find)
    };
    assert_eq!(lines(&mut browser, "Throughput"), json!(1));
    for stack in ["ext4", "tmpfs"] {
        browser.click(&format!("#telemetry .chips button[data-id='{}']", sample::case_id(stack, 16)));
    }
    views(&mut browser);
    assert_eq!(lines(&mut browser, "Throughput"), json!(3));
    assert_eq!(lines(&mut browser, "Latency percentiles"), json!(9));
    assert_eq!(browser.evaluate("document.querySelectorAll('.wide-charts .chart').length"), json!(6));
    browser.click(".small-grid .legend button");
    assert_eq!(lines(&mut browser, "Latency percentiles"), json!(6));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn quantities_of_different_meaning_do_not_share_an_axis() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, "light") else { return };
    views(&mut browser);
    let titles = browser.evaluate(
        "Array.from(document.querySelectorAll('.small-grid h4')).map(one => one.firstChild.textContent.trim())",
    );
    for title in [
        "Throughput",
        "Device: mean flush latency",
        "Device: mean write latency",
        "Device: queue depth",
        "WAL",
        "WAL syncs",
    ] {
        assert!(titles.as_array().unwrap().contains(&json!(title)), "{title}: {titles}");
    }
}
