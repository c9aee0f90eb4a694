// snippet.the-decorator
import Larder

/// A decorator that reports each operation that fails or takes long.
public struct WatchedStore<Base: DataStore>: ForwardingStore {
  public let base: Base
  let threshold: Duration
  let time: ElapsedTime
  let report: @Sendable (StoreOperation, Duration, (any Error)?) -> Void

  // Every asynchronous operation of the store and of its capabilities passes through here.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    let start = time.duration
    do {
      let result = try await body()
      if time.duration - start >= threshold { report(operation, time.duration - start, nil) }
      return result
    } catch {
      report(operation, time.duration - start, error)
      throw error
    }
  }
}

// A decorator has the capabilities that it declares.
extension WatchedStore: ExpirableStore where Base: ExpirableStore {}
extension WatchedStore: InvalidatableStore where Base: InvalidatableStore {}
extension WatchedStore: FlushableStore where Base: FlushableStore {}
extension WatchedStore: MaintainableStore where Base: MaintainableStore {}
extension WatchedStore: ObservableStore where Base: ObservableStore {
  public func weakReference() -> @Sendable () -> Self? {
    let (base, threshold, time, report) = (base.weakReference(), threshold, time, report)
    return { base().map { WatchedStore(base: $0, threshold: threshold, time: time, report: report) } }
  }
}

extension DataStore {
  /// Returns this store with a report of each operation that fails or takes at least as long as the threshold.
  public func watched(
    threshold: Duration, clock: any Clock<Duration> = ContinuousClock(),
    report: @escaping @Sendable (StoreOperation, Duration, (any Error)?) -> Void
  ) -> WatchedStore<Self> {
    WatchedStore(base: self, threshold: threshold, time: ElapsedTime(by: clock), report: report)
  }
}
// snippet.end
