#if Metrics
internal import Synchronization

/// The place for the meter of one kind of operation, which is made when the first such operation comes.
final class OperationPlace: Sendable {
  private let made = AtomicLazyReference<OperationMeter>()
  private let making = Mutex<Void>(())

  /// The meter; `nil` where none was needed yet.
  var meter: OperationMeter? { made.load() }

  /// Makes the meter, unless another has done so meanwhile.
  ///
  /// - Parameter make: Makes one. It is called once at most, since a backend is told of everything that is made.
  /// - Returns: The meter.
  func setMeter(_ make: () -> OperationMeter) -> OperationMeter {
    making.withLock { _ in made.load() ?? made.storeIfNil(make()) }
  }
}
#endif
