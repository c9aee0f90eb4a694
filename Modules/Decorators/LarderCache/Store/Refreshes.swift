import Larder

/// The loads behind readers that run, and what is not loaded for a while since a load has failed.
struct Refreshes: Sendable {
  /// The most loads behind readers that run at a time.
  ///
  /// Whoever finds a copy due beyond them leaves it to the next reader.
  private static var highestCount: Int { 4 }

  /// The most keys that are left alone each for itself.
  private static var highestPausedKeyCount: Int { 64 }

  /// How many loads run.
  private(set) var count = 0

  /// Until when nothing is loaded.
  private var pauseEnd: Duration?

  /// Until when the keys are not loaded that could not be read.
  private var keyPauseEnds: [StoreKey: Duration] = [:]

  /// Begins a load, unless too many others run or one has failed a short time ago.
  ///
  /// - Parameters:
  ///   - keys: The keys whose copies are due.
  ///   - time: The time.
  /// - Returns: Those that may be loaded; `nil` where none may, and nothing has begun.
  mutating func begin(_ keys: [StoreKey], at time: Duration) -> Set<StoreKey>? {
    guard count < Refreshes.highestCount, pauseEnd.map({ time >= $0 }) ?? true else { return nil }
    let allowed = Set(keys.filter { key in keyPauseEnds[key].map { time >= $0 } ?? true })
    guard !allowed.isEmpty else { return nil }
    count += 1
    return allowed
  }

  /// Ends a load.
  ///
  /// Where the failure is that of some keys, only those are left alone; but if there are many of them, the base is.
  ///
  /// - Parameters:
  ///   - keys: The keys that were read.
  ///   - failure: What the base threw; `nil` where it was read.
  ///   - time: The time.
  ///   - end: Until when what failed is left alone.
  mutating func end(_ keys: [StoreKey], failure: (any Error)?, at time: Duration, pauseEnd end: Duration) {
    count -= 1
    guard let failure else { return }
    keyPauseEnds = keyPauseEnds.filter { time < $0.value }
    let faulty = (failure as? StoreError)?.keysAtFault(among: keys) ?? []
    guard !faulty.isEmpty, keyPauseEnds.count + faulty.count <= Refreshes.highestPausedKeyCount else {
      pauseEnd = end
      return
    }
    for key in faulty { keyPauseEnds[key] = end }
  }
}

extension StoreError {
  /// The keys of a load that this error is about; none where it may as well be about the base.
  fileprivate func keysAtFault(among keys: [StoreKey]) -> [StoreKey] {
    // A base in trouble may name the key that it was asked for.
    guard !isRetryable, ![.ioFailed, .timedOut, .locked, .conflict, .closed].contains(code) else { return [] }
    let lost = (underlying as? any UnreadableKeysError)?.keys
    return keys.filter { $0 == key || lost?.contains($0) == true }
  }
}
