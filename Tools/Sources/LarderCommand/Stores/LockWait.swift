import Larder

/// Tries again to open what another has open, for a while.
///
/// Nothing tells when the kernel ends another's lock, so it looks, more and more seldom.
struct LockWait {
  private static let longestPause = Duration.milliseconds(50)

  private let patience: Duration

  /// Makes a wait.
  ///
  /// - Parameter patience: How long it tries; at least once.
  init(upTo patience: Duration) {
    self.patience = patience
  }

  /// Opens something.
  ///
  /// - Parameter open: Opens it.
  /// - Returns: What `open` returned.
  /// - Throws: What `open` threw; ``StoreError`` with `locked` only when the time is over.
  func run<Result>(_ open: () async throws -> Result) async throws -> Result {
    let clock = ContinuousClock()
    let deadline = clock.now.advanced(by: patience)
    var pause = Duration.milliseconds(1)
    while true {
      do {
        return try await open()
      } catch let error as StoreError {
        let left = clock.now.duration(to: deadline)
        guard error.code == .locked, error.operation == .open, left > .zero else { throw error }
        // By chance, so that of many who wait none comes too late each time.
        let part = pause * Double.random(in: 0.5...1)
        try await clock.sleep(for: min(part, left))
      }
      pause = min(pause * 2, LockWait.longestPause)
    }
  }
}
