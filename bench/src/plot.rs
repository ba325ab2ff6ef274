//! Plots, as SVG written by hand: lines over a logarithmic axis. That is all the results need.

use crate::measure::short;
use std::fmt::Write;

pub struct Plot {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    pub log_y: bool,
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 6] = [
    "#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a",
];

impl Plot {
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let x_scale = Scale::new(points().map(|p| p.0), true, LEFT, WIDTH - RIGHT);
        let y_scale = Scale::new(points().map(|p| p.1), self.log_y, HEIGHT - BOTTOM, TOP);
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>",
            escaped(&self.title)
        );
        for tick in x_scale.ticks() {
            let x = x_scale.place(tick);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                HEIGHT - BOTTOM + 18.0,
                amount(tick)
            );
        }
        for tick in y_scale.ticks() {
            let y = y_scale.place(tick);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#d0d7de\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                amount(tick)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text x=\"14\" y=\"{:.1}\" transform=\"rotate(-90 14 {:.1})\" text-anchor=\"middle\">{}</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 12.0,
            escaped(self.x),
            HEIGHT / 2.0,
            HEIGHT / 2.0,
            escaped(self.y)
        );
        for (number, (name, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let path: Vec<_> = points
                .iter()
                .map(|(x, y)| format!("{:.1},{:.1}", x_scale.place(*x), y_scale.place(*y)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                path.join(" ")
            );
            for point in &path {
                let (x, y) = point.split_once(',').unwrap_or_default();
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\"/>"
                );
            }
            let y = TOP + 4.0 + 16.0 * number as f64;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\" fill=\"{colour}\">{}</text>",
                WIDTH - RIGHT - 4.0,
                escaped(name)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
    from: f64,
    until: f64,
}

impl Scale {
    fn new(
        values: impl Iterator<Item = f64> + Clone,
        logarithmic: bool,
        from: f64,
        until: f64,
    ) -> Scale {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match logarithmic {
            true => (
                least.log10().floor(),
                most.log10().ceil().max(least.log10().floor() + 1.0),
            ),
            false => (0.0, most * 1.25),
        };
        Scale {
            logarithmic,
            low,
            high,
            from,
            until,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let value = if self.logarithmic {
            value.log10()
        } else {
            value
        };
        self.from + (value - self.low) / (self.high - self.low) * (self.until - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            return (self.low as i32..=self.high as i32)
                .map(|power| 10f64.powi(power))
                .collect();
        }
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        (0..)
            .map(|n| n as f64 * step)
            .take_while(|tick| *tick <= self.high)
            .collect()
    }
}

fn amount(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v if v >= 1.0 || v == 0.0 => format!("{v}"),
        v => short(v),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
