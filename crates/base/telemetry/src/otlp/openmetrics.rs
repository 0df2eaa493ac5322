//! A page of OpenMetrics, as `/metrics` shows it, as metrics of OTLP: one mechanism for both, so
//! that they cannot differ.
//!
//! * Names are those that Prometheus has, `_total` of counters with them, so that a dashboard
//!   works whichever way its numbers came.
//! * Counters are monotonic cumulative sums, gauges gauges, histograms such with explicit
//!   bounds. An info is a sum of 1 that is not monotonic, as OpenTelemetry has it.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

const CUMULATIVE_CODE: i32 = AggregationTemporality::Cumulative as i32;

/// The time that was counted, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// The metrics of a page. Families without a sample are left out, and lines that are none.
pub(super) fn metrics(page: &str, span: Span) -> Vec<Metric> {
    let mut families: Vec<Family> = Vec::new();
    for line in page.lines() {
        if let Some(described) = line.strip_prefix("# ") {
            let mut words = described.splitn(3, ' ');
            let (Some(word), Some(name)) = (words.next(), words.next()) else {
                continue;
            };
            let text = words.next().unwrap_or_default();
            if families.last().is_none_or(|family| family.name != name) {
                families.push(Family {
                    name,
                    ..Family::default()
                });
            }
            match (word, families.last_mut()) {
                ("HELP", Some(family)) => family.help = text,
                ("TYPE", Some(family)) => family.kind = text,
                _ => {}
            }
        } else if let (Some(sample), Some(family)) = (Sample::read(line), families.last_mut()) {
            family.samples.push(sample);
        }
    }
    families
        .into_iter()
        .filter_map(|family| family.metric(span))
        .collect()
}

/// The samples of one name.
#[derive(Default)]
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    kind: &'a str,
    samples: Vec<Sample<'a>>,
}

impl Family<'_> {
    fn metric(self, span: Span) -> Option<Metric> {
        let (description, unit) = (self.help.to_owned(), unit(self.name).to_owned());
        let mut name = self.samples.first()?.name;
        let data = match self.kind {
            "counter" => sum(self.samples, span, true),
            "info" => sum(self.samples, span, false),
            "gauge" | "unknown" => Data::Gauge(Gauge {
                data_points: numbers(self.samples, span),
            }),
            "histogram" => {
                name = self.name;
                histogram(self.samples, span)
            }
            _ => return None,
        };
        Some(Metric {
            name: name.to_owned(),
            description,
            unit,
            metadata: Vec::new(),
            data: Some(data),
        })
    }
}

/// The unit that a name ends with, as UCUM has it. KiB are an annotation: Prometheus would
/// name what is in `KiBy` anew.
fn unit(name: &str) -> &'static str {
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("milliseconds") => "ms",
        Some("bytes") => "By",
        Some("kib") => "{KiB}",
        _ => "",
    }
}

fn sum(samples: Vec<Sample>, span: Span, is_monotonic: bool) -> Data {
    Data::Sum(Sum {
        data_points: numbers(samples, span),
        aggregation_temporality: CUMULATIVE_CODE,
        is_monotonic,
    })
}

fn numbers(samples: Vec<Sample>, span: Span) -> Vec<NumberDataPoint> {
    let number = |sample: Sample| {
        let value = match sample.value.parse() {
            // Whole numbers first: beyond 2^53 a double would lose their last digits.
            Ok(whole) => Value::AsInt(whole),
            Err(_) => Value::AsDouble(sample.value.parse().ok()?),
        };
        Some(NumberDataPoint {
            attributes: sample.attributes(),
            start_time_unix_nano: span.start,
            time_unix_nano: span.end,
            value: Some(value),
            ..NumberDataPoint::default()
        })
    };
    samples.into_iter().filter_map(number).collect()
}

/// The samples of one histogram follow each other.
fn histogram(samples: Vec<Sample>, span: Span) -> Data {
    let mut data_points: Vec<HistogramDataPoint> = Vec::new();
    // The count below the bound before: buckets of OpenMetrics are cumulative, those of OTLP not.
    let mut below = 0;
    for mut sample in samples {
        let bound = sample.labels.iter().position(|(name, _)| *name == "le");
        let bound = bound.map(|at| sample.labels.remove(at).1);
        let (name, value) = (sample.name, sample.value);
        let attributes = sample.attributes();
        if data_points
            .last()
            .is_none_or(|point| point.attributes != attributes)
        {
            below = 0;
            data_points.push(HistogramDataPoint {
                attributes,
                start_time_unix_nano: span.start,
                time_unix_nano: span.end,
                ..HistogramDataPoint::default()
            });
        }
        let Some(point) = data_points.last_mut() else {
            continue;
        };
        if name.ends_with("_sum") {
            point.sum = value.parse().ok();
        } else if name.ends_with("_count") {
            point.count = value.parse().unwrap_or_default();
        } else if let (Some(Ok(bound)), Ok(count)) = (bound.map(|it| it.parse()), value.parse()) {
            if f64::is_finite(bound) {
                point.explicit_bounds.push(bound);
            }
            point.bucket_counts.push(u64::saturating_sub(count, below));
            below = count;
        }
    }
    Data::Histogram(Histogram {
        data_points,
        aggregation_temporality: CUMULATIVE_CODE,
    })
}

/// A line with a number.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: &'a str,
}

impl<'a> Sample<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_at_checked(line.find(['{', ' '])?)?;
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(labels) => self::labels(labels)?,
            None => (Vec::new(), rest),
        };
        // A time or an exemplar may follow.
        let value = rest.split_ascii_whitespace().next()?;
        Some(Self {
            name,
            labels,
            value,
        })
    }

    fn attributes(self) -> Vec<KeyValue> {
        let attribute = |(key, value): (&str, String)| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue {
                value: Some(any_value::Value::StringValue(value)),
            }),
            ..KeyValue::default()
        };
        self.labels.into_iter().map(attribute).collect()
    }
}

/// Labels until the brace that closes them, and what follows it.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let (value, after) = unquoted(quoted)?;
        labels.push((name, value));
        rest = after;
    }
}

/// A text until the quote that closes it, and what follows it.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let (mut text, mut chars) = (String::new(), quoted.chars());
    loop {
        match chars.next()? {
            '"' => return Some((text, chars.as_str())),
            '\\' => match chars.next()? {
                'n' => text.push('\n'),
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::metrics::info::Info;
    use prometheus_client::registry::Registry;

    use super::*;

    const SPAN: Span = Span { start: 1, end: 9 };

    /// What is sent of a page that the library of `/metrics` writes.
    fn sent(page: &Registry) -> Vec<Metric> {
        let mut text = String::new();
        encode(&mut text, page).expect("text");
        metrics(&text, SPAN)
    }

    fn attributes(attributes: &[KeyValue]) -> Vec<(String, String)> {
        let attribute = |it: &KeyValue| {
            let value = it.value.clone().and_then(|it| it.value);
            match value {
                Some(any_value::Value::StringValue(text)) => (it.key.clone(), text),
                other => panic!("{other:?}"),
            }
        };
        attributes.iter().map(attribute).collect()
    }

    fn only(metrics: Vec<Metric>) -> (Metric, Data) {
        assert_eq!(metrics.len(), 1, "{metrics:?}");
        let mut metric = metrics.into_iter().next().expect("one");
        let data = metric.data.take().expect("data");
        (metric, data)
    }

    #[test]
    fn a_counter_is_a_monotonic_sum_since_the_start_under_the_name_of_its_series() {
        let family = Family::<Vec<(&str, String)>, Counter>::default();
        let labels = vec![("kind", "a\"b\\c,}=\n".to_owned()), ("none", String::new())];
        family.get_or_create_owned(&labels).inc_by(7);
        let mut page = Registry::default();
        page.register("work_begun", "Work that was begun", family);
        let (metric, data) = only(sent(&page));
        assert_eq!(
            [metric.name, metric.description, metric.unit],
            ["work_begun_total", "Work that was begun.", ""]
        );
        let Data::Sum(sum) = data else {
            panic!("{data:?}")
        };
        let point = &sum.data_points[0];
        assert_eq!(
            (sum.is_monotonic, sum.aggregation_temporality, point.value),
            (true, CUMULATIVE_CODE, Some(Value::AsInt(7)))
        );
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 9));
        let expected = labels
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        assert_eq!(attributes(&point.attributes), expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_gauge_is_a_gauge_with_the_unit_that_its_name_ends_with() {
        for (name, unit) in [
            ("a_timestamp_seconds", "s"),
            ("a_milliseconds", "ms"),
            ("a_bytes", "By"),
            ("a_kib", "{KiB}"),
            ("a_fds", ""),
        ] {
            let gauge = Gauge::<i64>::default();
            gauge.set(-3);
            let mut page = Registry::default();
            page.register(name, "x", gauge);
            let (metric, data) = only(sent(&page));
            assert_eq!((metric.name.as_str(), metric.unit.as_str()), (name, unit));
            let Data::Gauge(gauge) = data else {
                panic!("{data:?}")
            };
            assert_eq!(gauge.data_points[0].value, Some(Value::AsInt(-3)));
        }
        let mut page = Registry::default();
        page.register("start_seconds", "x", ConstGauge::new(1_795_706_000.25));
        let (_, data) = only(sent(&page));
        let Data::Gauge(gauge) = data else {
            panic!("{data:?}")
        };
        let value = Value::AsDouble(1_795_706_000.25);
        assert_eq!(gauge.data_points[0].value, Some(value));
    }

    #[test]
    fn a_histogram_has_its_bounds_and_what_is_between_them_for_each_of_its_labels() {
        let seconds = || Histogram::new([0.000_1, 0.5, 10.0]);
        let family = Family::<Vec<(&str, &str)>, Histogram, _>::new_with_constructor(seconds);
        for (rpc, values) in [("A", &[0.25, 0.5, 1.0, 99.0][..]), ("B", &[0.000_05])] {
            for value in values {
                family
                    .get_or_create_owned(&vec![("rpc", rpc)])
                    .observe(*value);
            }
        }
        let mut page = Registry::default();
        page.register("handling_seconds", "How long calls took", family);
        let (metric, data) = only(sent(&page));
        assert_eq!(
            [metric.name.as_str(), metric.unit.as_str()],
            ["handling_seconds", "s"]
        );
        let Data::Histogram(mut histogram) = data else {
            panic!("{data:?}")
        };
        assert_eq!(histogram.aggregation_temporality, CUMULATIVE_CODE);
        let points = &mut histogram.data_points;
        points.sort_by_key(|point| attributes(&point.attributes));
        let told: Vec<_> = points
            .iter()
            .map(|it| {
                (
                    attributes(&it.attributes)[0].1.clone(),
                    it.count,
                    it.sum,
                    &it.bucket_counts[..],
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("A".to_owned(), 4, Some(100.75), &[0, 2, 1, 1][..]),
                ("B".to_owned(), 1, Some(0.000_05), &[1, 0, 0, 0])
            ]
        );
        assert!(
            points
                .iter()
                .all(|it| it.explicit_bounds == [0.000_1, 0.5, 10.0])
        );
    }

    #[test]
    fn the_buckets_of_each_histogram_are_counted_from_its_first_bound() {
        let page = "# TYPE h histogram\n\
                    h_bucket{rpc=\"A\",le=\"1.0\"} 5\n\
                    h_bucket{rpc=\"A\",le=\"+Inf\"} 9\n\
                    h_bucket{rpc=\"B\",le=\"1.0\"} 7\n\
                    h_bucket{rpc=\"B\",le=\"+Inf\"} 8\n";
        let (_, data) = only(metrics(page, SPAN));
        let Data::Histogram(histogram) = data else {
            panic!("{data:?}")
        };
        let counts = histogram.data_points.iter().map(|it| &it.bucket_counts[..]);
        assert_eq!(counts.collect::<Vec<_>>(), [[5, 4], [7, 1]]);
    }

    #[test]
    fn what_is_of_no_known_type_is_a_gauge() {
        let (_, data) = only(metrics("# TYPE x unknown\nx 2\n", SPAN));
        let Data::Gauge(gauge) = data else {
            panic!("{data:?}")
        };
        assert_eq!(gauge.data_points[0].value, Some(Value::AsInt(2)));
    }

    #[test]
    fn what_a_server_is_is_a_sum_of_one_that_does_not_grow() {
        let mut page = Registry::default();
        page.register("build", "What this is", Info::new(vec![("version", "1")]));
        let (metric, data) = only(sent(&page));
        assert_eq!(metric.name, "build_info");
        let Data::Sum(sum) = data else {
            panic!("{data:?}")
        };
        assert!(!sum.is_monotonic);
        assert_eq!(sum.data_points[0].value, Some(Value::AsInt(1)));
    }

    #[test]
    fn a_family_without_samples_and_what_is_no_line_of_a_page_are_left_out() {
        let mut page = Registry::default();
        page.register("none", "x", Family::<Vec<(&str, &str)>, Counter>::default());
        assert_eq!(sent(&page), []);
        for line in [
            "",
            "x",
            "x{",
            "x{a",
            "x{a=\"",
            "x{a=\"b\"",
            "x{a=\"b\"}",
            "{} 1",
            "x y",
        ] {
            let text = format!("# HELP x y.\n# TYPE x gauge\n{line}\nx 2 # {{}} 1\n# EOF\n");
            let found = metrics(&text, SPAN);
            let Some(Data::Gauge(gauge)) = &found[0].data else {
                panic!("{found:?}")
            };
            let values: Vec<_> = gauge.data_points.iter().map(|it| it.value).collect();
            let last = values.last().copied().flatten();
            assert_eq!(last, Some(Value::AsInt(2)), "{line}: {found:?}");
        }
    }
}
