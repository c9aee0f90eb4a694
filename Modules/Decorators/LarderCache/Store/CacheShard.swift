import Larder
import Synchronization

/// What goes on with a part of the keys of a ``CopyCache``.
///
/// Its lock comes before the locks of the cache: values are inserted into the cache while it is held, and never is it
/// taken while one of those is held.
final class CacheShard: Sendable {
  /// What the lock protects.
  struct State: Sendable {
    var busy = BusyKeys<SharedLoad>()
    private var lastStamp: UInt64 = 0

    /// The number of a new copy.
    mutating func nextStamp() -> UInt64 {
      lastStamp += 1
      return lastStamp
    }
  }

  private let state = Mutex(State())

  /// Does something with the state.
  func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    state.withLock { state in body(&state) }
  }
}
