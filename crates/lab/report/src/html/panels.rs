//! A page of panels, for what is no experiment.

use maud::{PreEscaped, html};

use crate::chart::steps;
use crate::panels::Panels;
use crate::svg;

/// One file without scripts and without anything from elsewhere.
pub fn page(panels: &Panels) -> String {
    let drawn = |width| svg::inline(&steps::draw(panels, width));
    let body = html! {
        header { h1 { (panels.title) } p.meta { (panels.about) } }
        main {
            section { h2 { "Figures" } div.card { pre { (panels.table) } } }
            section {
                h2 { "Over time" }
                figure.card {
                    div.wide { (PreEscaped(drawn(steps::WIDTHS.0))) }
                    div.narrow { (PreEscaped(drawn(steps::WIDTHS.1))) }
                }
            }
        }
    };
    super::document(&panels.title, &body)
}
