import Synchronization

/// What each run of the body of an update left in its slots.
final class RecordedSlots<Value: Sendable>: Sendable {
  private let runs = Mutex<[[Value?]]>([])

  /// Adds what a run left.
  func append(_ slots: [Value?]) {
    runs.withLock { $0.append(slots) }
  }

  /// What the last run left, the one that counts; `nil` where there was none.
  var last: [Value?]? {
    runs.withLock { $0.last }
  }
}
