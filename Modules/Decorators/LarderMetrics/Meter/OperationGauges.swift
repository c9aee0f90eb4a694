#if Metrics
internal import CoreMetrics
internal import Synchronization

/// What a backend of swift-metrics is told of one kind of operation beside its times, made when it is first needed.
final class OperationGauges: Sendable {
  private let store: String
  private let name: String
  private let countsBytes: Bool
  private let factory: any MetricsFactory
  private let madeInFlight = AtomicLazyReference<CoreMetrics.Meter>()
  private let madeBytes = AtomicLazyReference<Counter>()
  private let making = Mutex<Void>(())

  /// Tells nothing so far.
  ///
  /// - Parameters:
  ///   - name: What is measured.
  ///   - store: The name of the store.
  ///   - countsBytes: Whether bytes are counted.
  ///   - factory: The backend.
  init(_ name: String, store: String, countsBytes: Bool, factory: any MetricsFactory) {
    self.name = name
    self.store = store
    self.countsBytes = countsBytes
    self.factory = factory
  }

  /// How many have begun and not ended.
  var inFlight: CoreMetrics.Meter {
    madeInFlight.load()
      ?? making.withLock { _ in
        // Looked for again: a backend is told of everything that is made.
        madeInFlight.load()
          ?? madeInFlight.storeIfNil(
            CoreMetrics.Meter(label: "larder_operations_in_flight", dimensions: dimensions, factory: factory))
      }
  }

  /// The bytes of the values that were read or written; `nil` where they are not counted.
  var bytes: Counter? {
    guard countsBytes else { return nil }
    return madeBytes.load()
      ?? making.withLock { _ in
        madeBytes.load()
          ?? madeBytes.storeIfNil(
            Counter(label: "larder_operation_bytes", dimensions: dimensions, factory: factory))
      }
  }

  private var dimensions: [(String, String)] { [("store", store), ("operation", name)] }
}
#endif
