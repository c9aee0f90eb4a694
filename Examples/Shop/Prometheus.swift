import LarderMetrics
import LarderWorker

/// Returns the measurements of a store and of a worker as text for Prometheus.
///
/// Neither a key nor a value is a label, so that the number of series is fixed.
func prometheusText(of report: MeterReport, worker: QueueWorkerStatistics) -> String {
  var text = PrometheusText()
  text.begin("larder_operation_duration_seconds", "summary", "The duration of operations of the store.")
  for operation in report.operations {
    let labels = #"store="\#(report.store)",operation="\#(operation.name)""#
    for (quantile, duration) in [
      ("0.5", operation.median), ("0.9", operation.percentile90), ("0.99", operation.percentile99),
    ] {
      text.add("", #"\#(labels),quantile="\#(quantile)""#, duration / .seconds(1))
    }
    text.add("_sum", labels, operation.total / .seconds(1))
    text.add("_count", labels, Double(operation.count))
  }
  text.begin("larder_operation_errors_total", "counter", "The failed operations of the store, by code.")
  for operation in report.operations {
    for (code, count) in operation.errors.sorted(by: { $0.key < $1.key }) {
      text.add("", #"store="\#(report.store)",operation="\#(operation.name)",code="\#(code)""#, Double(count))
    }
  }
  text.begin("larder_operations_in_flight", "gauge", "The running operations of the store.")
  for operation in report.operations {
    text.add("", #"store="\#(report.store)",operation="\#(operation.name)""#, Double(operation.inFlight))
  }
  text.begin("shop_mails_total", "counter", "The items of the outbox, by result.")
  text.add("", #"result="processed""#, Double(worker.processed))
  text.add("", #"result="failed""#, Double(worker.failed + worker.timedOut))
  return text.text
}

/// The lines of the text.
private struct PrometheusText {
  private(set) var text = ""
  private var name = ""

  mutating func begin(_ name: String, _ type: String, _ help: String) {
    self.name = name
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
  }

  mutating func add(_ suffix: String, _ labels: String, _ value: Double) {
    text += "\(name)\(suffix){\(labels)} \(value)\n"
  }
}
