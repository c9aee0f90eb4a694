#if Metrics
import Larder
import Tracing

/// The names under which a ``StoreMeter`` reports to swift-metrics and swift-distributed-tracing.
///
/// ```swift
/// let meter = StoreMeter(name: "users", names: .openTelemetry(system: "sqlite"))
/// let users = base.metered(by: meter)
/// ```
public struct MeterNames: Sendable, Hashable {
  /// The system of OpenTelemetry's names, or `nil` for Larder's own names.
  let system: String?

  /// The names of Larder, such as `larder_operation_duration`.
  public static let larder = MeterNames(system: nil)

  /// The names of the semantic conventions of OpenTelemetry for databases and, for the operations of queues, for messaging.
  ///
  /// Operations are histograms in seconds, `db.client.operation.duration` with `db.system.name`, `db.operation.name` and
  /// `db.collection.name`, which is the name of the meter. Those of queues are `messaging.client.operation.duration` with
  /// `messaging.system`, `messaging.operation.name`, `messaging.operation.type` and `messaging.destination.name`. A failure has
  /// the code of its error as `error.type`, or `_OTHER` if it is no `StoreError`. Spans have the same attributes.
  ///
  /// The items that a queue takes and delivers are counters, `messaging.client.sent.messages` and
  /// `messaging.client.consumed.messages`. A consumer that waits for an item makes a `receive`, wait included.
  ///
  /// Your own blocks, deliveries, operations in flight and bytes keep Larder's names, because the conventions do not name them.
  ///
  /// - Parameter system: The name of the system below the meter, such as `sqlite` or `postgresql`. Use the values of the
  ///   conventions if there is one.
  public static func openTelemetry(system: String) -> MeterNames {
    MeterNames(system: system)
  }
}

/// The names of one kind of operation.
struct OperationNames: Sendable {
  /// The types of the operations of queues.
  private static let messagingTypes: [StoreOperation: String] = [
    .enqueue: "send", .receive: "receive", .acknowledge: "settle", .release: "settle", .extend: "settle",
  ]

  /// The name of the metric of durations.
  let metric: String

  /// The dimensions of the metric, without those of the outcome.
  let dimensions: [(String, String)]

  /// A Boolean value that indicates whether durations are recorded in seconds, not as a timer.
  let isInSeconds: Bool

  /// The name of spans.
  let span: String

  /// The attributes of spans, without those of the outcome.
  let attributes: [(String, String)]

  /// The kind of spans.
  let spanKind: SpanKind

  /// The name of the counter of items, or `nil` for an operation without one.
  let messageCounter: String?

  /// Creates the names of an operation.
  ///
  /// - Parameters:
  ///   - operation: The name of the operation or block.
  ///   - store: The name of the store.
  ///   - isBlock: A Boolean value that indicates whether it is a block of the program, which has Larder's names.
  ///   - names: The conventions.
  init(_ operation: String, of store: String, isBlock: Bool, by names: MeterNames) {
    guard let system = names.system, !isBlock else {
      (metric, isInSeconds, messageCounter) = ("larder_operation_duration", false, nil)
      dimensions = [("store", store), ("operation", operation)]
      (span, spanKind) = ("larder.\(operation)", .client)
      attributes = [("larder.store", store)]
      return
    }
    if let type = Self.messagingTypes[StoreOperation(rawValue: operation)] {
      metric = "messaging.client.operation.duration"
      dimensions = [
        ("messaging.system", system), ("messaging.operation.name", operation), ("messaging.operation.type", type),
        ("messaging.destination.name", store),
      ]
      spanKind = type == "send" ? .producer : .client
      messageCounter =
        switch type {
        case "send": "messaging.client.sent.messages"
        case "receive": "messaging.client.consumed.messages"
        default: nil
        }
    } else {
      metric = "db.client.operation.duration"
      dimensions = [("db.system.name", system), ("db.operation.name", operation), ("db.collection.name", store)]
      (spanKind, messageCounter) = (.client, nil)
    }
    (isInSeconds, span, attributes) = (true, "\(operation) \(store)", dimensions)
  }

  /// Returns the dimensions of an outcome.
  func dimensions(of outcome: OperationMeter.Outcome) -> [(String, String)] {
    guard isInSeconds else { return [("outcome", outcome.name)] }
    // All series of a metric have the same labels, which registries of Prometheus require.
    return [("error.type", outcome.isFailure ? errorType(of: outcome) : "")]
  }

  /// Returns the attributes of an outcome.
  func attributes(of outcome: OperationMeter.Outcome) -> [(String, String)] {
    guard isInSeconds else { return [("larder.outcome", outcome.name)] }
    return outcome.isFailure ? [("error.type", errorType(of: outcome))] : []
  }

  /// Returns the error of an outcome.
  ///
  /// The conventions have a name for one that is not known.
  private func errorType(of outcome: OperationMeter.Outcome) -> String {
    outcome.name == OperationMeter.Outcome.other.name ? "_OTHER" : outcome.name
  }
}
#endif
