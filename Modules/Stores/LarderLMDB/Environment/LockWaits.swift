#if LMDB
import CLMDB
import Dispatch
import Foundation
import Larder

/// The waits of this process for LMDB's locks, which are woken if they have missed their wake-up.
///
/// On Linux, LMDB's locks are robust mutexes of the C library. An unlocked mutex wakes one of its waiters. If that waiter is
/// killed before it runs, and another thread has taken the mutex in between, the mutex no longer says that others wait. They
/// are never woken then, although the mutex is free (seen with glibc 2.36 and Linux 6.18, without LMDB). A waiter that is woken
/// without a reason looks at the mutex and waits on, so it can be woken at any time.
final class LockWaits: Sendable {
  private struct State: Sendable {
    /// The number of the latest wait.
    var latest = 0
    /// The numbers of the waits that have not ended.
    var waiting: [Int] = []
    /// A Boolean value that indicates whether a check is planned.
    var isWatched = false
  }

  /// The time between two checks.
  ///
  /// There are none while no thread waits.
  private static let interval = DispatchTimeInterval.seconds(1)

  /// The number of bytes at the beginning of a lock file that have all of its locks, in LMDB 0.9 and 1.0.
  private static let headerSize = 256

  private let lockFile: String
  private let state = Locked(State())

  /// Creates the waits for the locks of a lock file.
  ///
  /// - Parameter lockFile: The path of the lock file that LMDB has mapped.
  init(lockFile: String) {
    self.lockFile = URL(filePath: lockFile).resolvingSymlinksInPath().path(percentEncoded: false)
  }

  /// Runs a closure that may wait for a lock.
  func waiting<Result>(_ body: () -> Result) -> Result {
    #if os(Linux)
    let (number, mustWatch) = state.withLock { state in
      state.latest += 1
      state.waiting.append(state.latest)
      defer { state.isWatched = true }
      return (state.latest, !state.isWatched)
    }
    defer { state.withLock { $0.waiting.removeAll { $0 == number } } }
    if mustWatch { watch(number) }
    #endif
    return body()
  }

  #if os(Linux)
  /// Looks after a while whether a wait up to a number has not ended.
  private func watch(_ number: Int) {
    // Not on the pool of tasks, all of whose threads can wait for a lock.
    DispatchQueue.global().asyncAfter(deadline: .now() + Self.interval) { [weak self] in
      guard let self else { return }
      let (latest, isOverdue) = state.withLock { state in
        state.isWatched = !state.waiting.isEmpty
        return (state.isWatched ? state.latest : nil, state.waiting.contains { $0 <= number })
      }
      if isOverdue { wake() }
      if let latest { watch(latest) }
    }
  }

  /// Wakes a waiter of each lock.
  private func wake() {
    guard let address = addressOfLockFile else { return }
    for offset in stride(from: 0, to: UInt(Self.headerSize), by: MemoryLayout<UInt32>.size) {
      larder_wake_waiter(UnsafeMutableRawPointer(bitPattern: address + offset))
    }
  }

  /// The address at which LMDB has mapped the lock file.
  private var addressOfLockFile: UInt? {
    // The file itself is not opened, because to close it would release the locks on it. Foundation reads only the first page of
    // a file without a size.
    guard let maps = fopen("/proc/self/maps", "re") else { return nil }
    var (line, capacity): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
    defer {
      free(line)
      fclose(maps)
    }
    while getline(&line, &capacity, maps) > 0, let text = line.map({ String(cString: $0) }) {
      guard text.hasSuffix(" \(lockFile)\n") else { continue }
      return text.split(separator: "-").first.flatMap { UInt($0, radix: 16) }
    }
    return nil
  }
  #endif
}
#endif
