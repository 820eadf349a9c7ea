//! The layout of report.html in a real browser: links, folding, heights, paper, tables on narrow views.

use crate::report::page::{COLOURS, Opened, open};
use crate::report::{hostile, sample};
use serde_json::{Value, json};

/// Widths that a report is looked at: a desktop, a tablet, a phone.
const WIDTHS: [u32; 3] = [1400, 800, 390];
/// Farthest that a heading may lie from the top of the view after its link was clicked, CSS pixels.
const OFFSET_MAX: f64 = 10.0;
/// Most rows of a table that is not folded.
const ROWS_OPEN_MAX: u64 = 24;

/// Opens every section and everything folded in them.
const OPEN_ALL: &str = "document.querySelectorAll('main details').forEach(one => { one.open = true; });
    new Promise(done => setTimeout(done, 200))";

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_link_lands_on_its_heading_at_every_width() {
    for width in WIDTHS {
        let Some(Opened { mut browser, .. }) = open(&sample::findings(), width, "light") else { return };
        let links = strings(&browser.evaluate("Array.from(document.querySelectorAll('nav a')).map(a => a.hash)"));
        assert!(links.len() > 10, "{links:?}");
        for link in links {
            // As the page begins; no chart of the section was drawn yet.
            browser.evaluate(
                "document.querySelectorAll('main details').forEach(one => { one.open = one.id === 'clients'; }); \
                 window.scrollTo({top: 0, behavior: 'instant'})",
            );
            browser.evaluate(&format!("document.querySelector('nav a[href=\"{link}\"]').click()"));
            // Whatever comes late must not move it.
            browser.evaluate("new Promise(done => setTimeout(done, 150))");
            let offset = browser.evaluate(&format!(
                "(() => {{ const nav = document.querySelector('nav');
                    const covered = getComputedStyle(nav).position === 'sticky' ? nav.getBoundingClientRect().bottom : 0;
                    const part = document.querySelector('{link}');
                    return part.querySelector('h2').getBoundingClientRect().top - covered; }})()"
            ));
            let offset = offset.as_f64().unwrap();
            assert!((0.0..=OFFSET_MAX).contains(&offset), "{link} at {width} px: {offset} px");
            let is_open = browser.evaluate(&format!("document.querySelector('{link}').open !== false"));
            assert_eq!(is_open, json!(true), "{link}");
        }
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn every_section_has_a_visible_link() {
    for width in WIDTHS {
        let Some(Opened { mut browser, .. }) = open(&sample::findings(), width, "light") else { return };
        let unlinked = "Array.from(document.querySelectorAll('main > section[id], main > details[id]'))
            .filter(one => !document.querySelector(`nav a[href=\"#${one.id}\"]`)).map(one => one.id)";
        assert_eq!(strings(&browser.evaluate(unlinked)), Vec::<String>::new());
        let hidden = format!(
            "Array.from(document.querySelectorAll('nav a')).filter(a => {{ const r = a.getBoundingClientRect();
                return r.left < 0 || r.right > {width} || r.width === 0; }}).map(a => a.hash)"
        );
        assert_eq!(strings(&browser.evaluate(&hidden)), Vec::<String>::new(), "at {width} px");
    }
}

#[test]
fn a_four_stack_report_is_short_on_screen_and_paper() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1400, "light") else { return };
    let height = browser.evaluate("document.documentElement.scrollHeight").as_u64().unwrap();
    assert!(height <= 12 * 900, "{height} px");
    // Several options are answered by their effects, else the ranking stands first.
    let first = browser.evaluate(
        "document.querySelector('#effects-section table, [data-chart=ranking]').getBoundingClientRect().bottom",
    );
    assert!(first.as_f64().unwrap() <= 900.0, "the answer ends below the first screen: {first}");
    let rows =
        "Math.max(...Array.from(document.querySelectorAll('main table')).filter(t => !t.closest('details:not([open])'))
        .map(t => t.querySelectorAll('tbody tr').length))";
    assert!(browser.evaluate(rows).as_u64().unwrap() <= ROWS_OPEN_MAX);
    let paper = json!({"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true, "printBackground": true});
    let pdf = browser.call("Page.printToPDF", paper);
    let pdf = decoded(pdf["data"].as_str().unwrap());
    let pages = pdf.windows(12).filter(|at| at.starts_with(b"/Type /Page") && at[11] != b's').count();
    assert!((1..=10).contains(&pages), "{pages} pages");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn charts_are_drawn_once_their_section_is_open() {
    for width in WIDTHS {
        let Some(Opened { mut browser, .. }) = open(&sample::findings(), width, "light") else { return };
        let visible = |browser: &mut crate::report::chromium::Chromium| {
            let colours = browser.evaluate(&format!(
                "(() => {{ const all = {COLOURS}; const shown = Array.from(document.querySelectorAll('.chart'));
                    return all.filter((one, i) => !shown[i].closest('details:not([open])')); }})()"
            ));
            let colours = colours.as_array().unwrap().clone();
            assert!(colours.iter().all(|one| one[1].as_u64().unwrap() > 20), "{width} px: {colours:?}");
            colours.len()
        };
        let open = visible(&mut browser);
        assert!(open >= 2, "the ranking and the clients");
        let height = "document.documentElement.scrollHeight";
        let before = browser.evaluate(height);
        browser.evaluate(
            "(async () => { for (let y = 0; y < document.documentElement.scrollHeight; y += 300) {
                window.scrollTo({top: y, behavior: 'instant'}); await new Promise(done => setTimeout(done, 10)); } })()",
        );
        assert_eq!(browser.evaluate(height), before, "nothing grows while the page is scrolled");
        browser.evaluate(OPEN_ALL);
        assert!(visible(&mut browser) > open);
    }
}

#[test]
fn no_table_column_is_hidden_without_a_hint() {
    for width in WIDTHS {
        for findings in [sample::findings(), hostile::hostile()] {
            let Some(Opened { mut browser, .. }) = open(&findings, width, "light") else { return };
            browser.evaluate(OPEN_ALL);
            let clipped = "Array.from(document.querySelectorAll('figure.table')).filter(f => {
                const box = f.querySelector('.scroll');
                const hint = getComputedStyle(f, '::before').content;
                return box.scrollWidth > box.clientWidth + 1 && !hint.includes('sideways');
            }).map(f => f.id)";
            assert_eq!(strings(&browser.evaluate(clipped)), Vec::<String>::new(), "at {width} px");
            let wide = format!(
                "[document.documentElement.scrollWidth <= {width}, document.querySelectorAll('.cards').length > 3]"
            );
            assert_eq!(browser.evaluate(&wide), json!([true, true]));
            if width == 390 {
                let cards = "Array.from(document.querySelectorAll('.cards.wide')).map(f => f.id)";
                assert_eq!(strings(&browser.evaluate(cards)), Vec::<String>::new(), "cards need no scrolling");
            }
        }
    }
}

#[test]
fn a_volatile_case_beyond_the_scale_ends_in_an_arrow() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1400, "light") else { return };
    let drawn = "echarts.getInstanceByDom(document.querySelector('[data-chart=ranking]')).getZr().storage
        .getDisplayList(true)";
    // Of rate and ratio, both inside the picture; its point would be a hollow circle.
    let arrows = format!(
        "{drawn}.filter(one => one.type === 'polygon' && one.shape.points.length === 3)
            .map(one => one.shape.points[1][0] > 100 && one.shape.points[1][0] <
                echarts.getInstanceByDom(document.querySelector('[data-chart=ranking]')).getWidth() - 60)"
    );
    assert_eq!(browser.evaluate(&arrows), json!([true, true]));
    let points = format!("{drawn}.filter(one => one.type === 'circle' && one.shape.r === 4.5).length");
    assert_eq!(browser.evaluate(&points), json!(0));
    let figure =
        "document.querySelector('#ranking-1 tbody.volatile td.num:nth-child(3)').firstChild.textContent.trim()";
    let in_table = browser.evaluate(figure);
    let in_chart = format!("{drawn}.some(one => one.style.text === {in_table})");
    assert_eq!(browser.evaluate(&in_chart), json!(true), "chart and table agree: {in_table}");
}

#[test]
fn whiskers_end_where_the_tested_interval_does() {
    let findings = sample::findings();
    let Some(Opened { mut browser, .. }) = open(&findings, 1400, "light") else { return };
    let ends = browser.evaluate(
        "(() => { const chart = echarts.getInstanceByDom(document.querySelector('[data-chart=ranking]'));
            const most = chart.getOption().xAxis[1].max;
            const drawn = chart.getZr().storage.getDisplayList(true)
                .filter(one => one.type === 'line' && one.shape.y1 === one.shape.y2 && one.style.lineWidth === 2)
                .map(one => [one.shape.x1, one.shape.x2].map(Math.round));
            const ratios = JSON.parse(document.getElementById('findings').textContent).findings.rankings[0].classes
                .flatMap(block => block.rows).filter(row => row.comparison).map(row => row.comparison.ratio);
            const tested = ratios.filter(ratio => ratio.value <= most)
                .map(ratio => [ratio.low, ratio.high].map(end => Math.round(chart.convertToPixel({xAxisIndex: 1}, end))));
            return [drawn, tested]; })()",
    );
    // Of xfs and btrfs; tmpfs lies beyond the scale.
    assert_eq!((ends[1].as_array().unwrap().len(), &ends[0]), (2, &ends[1]));
}

#[test]
fn caveats_take_a_line_each_on_a_desktop() {
    let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1400, "light") else { return };
    browser.evaluate(OPEN_ALL);
    let lines = browser.evaluate(
        "Array.from(document.querySelectorAll('.cautions li'))
            .map(one => Math.round(one.offsetHeight / parseFloat(getComputedStyle(one).lineHeight)))",
    );
    assert_eq!(lines, json!([1, 1, 1]));
}

#[test]
fn locks_have_no_colour_of_storage() {
    for scheme in ["light", "dark"] {
        let Some(Opened { mut browser, .. }) = open(&sample::findings(), 1200, scheme) else { return };
        browser.evaluate(OPEN_ALL);
        let bars = browser.evaluate(
            "echarts.getInstanceByDom(document.querySelector('[data-chart=waits]')).getOption().series
                .map(one => [one.name, one.itemStyle.color])",
        );
        let colours = |is_it: fn(&str) -> bool| -> Vec<String> {
            let bars = bars.as_array().unwrap().iter().filter(|bar| is_it(bar[0].as_str().unwrap()));
            bars.map(|bar| bar[1].as_str().unwrap().to_owned()).collect()
        };
        let storage = colours(|name| name.ends_with("(IO)") || name.starts_with("WALWrite"));
        let locks = colours(|name| name.ends_with("Lock)") && !name.starts_with("WALWrite"));
        assert!(storage.len() >= 3 && locks.len() >= 2, "{bars}");
        assert!(locks.iter().all(|lock| !storage.contains(lock)), "{bars}");
    }
}

/// Base64 to bytes; what is none of its digits is left out.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u32> = text.bytes().filter_map(digit).map(u32::from).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let word = four.iter().enumerate().fold(0u32, |word, (i, digit)| word | digit << (18 - 6 * i));
        bytes.extend(word.to_be_bytes().iter().skip(1).take(four.len() - 1));
    }
    bytes
}
