#if LMDB
import Larder
import LarderFiles
import Synchronization

/// The environments that this process has open, by the file that they are: to open one twice would break its locks.
enum EnvironmentTable {
  /// Where environments are opened: that blocks.
  static let queue = DispatchQueueExecutor(label: "Larder.LMDBEnvironment.opening")

  private struct Entry {
    let environment: SharedEnvironment
    var leaseCount: Int
  }

  private static let entries = Mutex<[FileAttributes.Identity: Entry]>([:])

  /// Gives out an environment that is open already, or opens it; blocks.
  ///
  /// - Returns: The environment, with one more lease on it, which `release(_:)` ends.
  /// - Throws: ``StoreError``.
  static func take(_ configuration: EnvironmentConfiguration) throws -> SharedEnvironment {
    try entries.withLock { entries in
      let files = try configuration.findFiles()
      if let identity = files?.identity, let entry = entries[identity] {
        try check(entry.environment, suits: configuration)
        entries[identity]?.leaseCount += 1
        return entry.environment
      }
      // To open and close the lock file of an open environment would give up the process's locks on it.
      if let lock = files?.lockIdentity, entries.values.contains(where: { $0.environment.lockIdentity == lock }) {
        throw StoreError(
          .locked, during: .open, store: configuration.name,
          message: "this process still has the data file open that was here before; close every store of it first",
          isRetryable: true)
      }
      let environment = try SharedEnvironment(configuration, files: files, besides: entries.count)
      entries[environment.identity] = Entry(environment: environment, leaseCount: 1)
      return environment
    }
  }

  private static func check(_ environment: SharedEnvironment, suits configuration: EnvironmentConfiguration) throws {
    guard environment.access == configuration.access else {
      throw StoreError(
        .locked, during: .open, store: configuration.name,
        message: "this process has the environment open with another access, \(environment.access)")
    }
    guard environment.durability == configuration.durability || configuration.access != .readWrite else {
      throw StoreError(
        .locked, during: .open, store: configuration.name,
        message: "this process has the environment open with another durability, \(environment.durability)")
    }
  }

  /// Ends a lease, and closes the environment with the last one; blocks.
  static func release(_ identity: FileAttributes.Identity) {
    entries.withLock { entries in
      guard var entry = entries[identity] else { return }
      entry.leaseCount -= 1
      if entry.leaseCount > 0 {
        entries[identity] = entry
      } else {
        // Closed under the lock: whoever opens the file next must find it closed.
        entry.environment.close()
        entries[identity] = nil
      }
    }
  }
}
#endif
