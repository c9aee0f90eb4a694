import Synchronization

/// Whether items can be decoded at all: what tells one bad item from a program that cannot decode any.
///
/// A program with the wrong type, or without a dictionary, must not bury what another can read.
final class DecodingRecord: Sendable {
  private struct State: Sendable {
    var hasDecoded = false
    var failures = 0
  }

  /// How many items may fail, none having been decoded, until receiving stops.
  static let failureLimit = 3

  private let state = Mutex(State())

  /// Whether an item has been decoded since the queue was opened, so that failures count.
  var hasDecoded: Bool { state.withLock { $0.hasDecoded } }

  /// Notes that an item was decoded.
  func noteSuccess() {
    state.withLock { $0.hasDecoded = true }
  }

  /// Notes that an item was not.
  ///
  /// - Returns: Whether it is time to stop: several failed, and none was ever decoded.
  func noteFailure() -> Bool {
    state.withLock { state in
      guard !state.hasDecoded else { return false }
      state.failures += 1
      guard state.failures >= DecodingRecord.failureLimit else { return false }
      state.failures = 0
      return true
    }
  }
}
