#if ServiceLifecycle
public import Larder

/// Work on a store that a ``StoreService`` repeats.
///
/// ```swift
/// let tasks: [StoreTask<SQLiteStore<[UInt8]>>] = [
///   .compacting(every: .seconds(86_400)),
///   .backingUp(every: .seconds(3600), in: "/backups", keeping: 24) {
///     try await SQLiteStore(path: $0, codec: .raw, access: .readOnly)
///   },
///   StoreTask("requests", every: .seconds(3600)) { bytes in
///     try IdempotencyKeys(bytes, prefix: "requests/", codec: .json(Receipt.self))
///   } run: { requests in
///     try await requests.purge()
///   },
/// ]
/// ```
///
/// An error of a run is reported, and the next run comes after the interval.
public struct StoreTask<Store: DataStore>: Sendable {
  /// The name of the task in reports.
  public let name: String

  /// The time from the end of a run to the next one.
  public let interval: Duration

  /// Returns the time from the opening of the store to the first run.
  let firstDelay: @Sendable () throws -> Duration

  /// Returns the closure that does the work, once for each service.
  let makeRun: @Sendable () -> @Sendable (Store) async throws -> Void

  /// Creates a task.
  ///
  /// ```swift
  /// let task = StoreTask<SQLiteStore<[UInt8]>>("report size", every: .seconds(60)) { store in
  ///   logger.info("\(try await store.storeStatistics().entryCount) entries")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name in reports.
  ///   - interval: The time from the opening of the store to the first run, and from the end of a run to the next one. It must
  ///     be greater than zero.
  ///   - run: A closure that does the work. Its task is cancelled at the shutdown, which waits for its end.
  public init(_ name: String, every interval: Duration, run: @escaping @Sendable (Store) async throws -> Void) {
    self.init(name, every: interval, firstDelay: { interval }, makeRun: { run })
  }

  /// Creates a task that works with an object which remembers something from one run to the next.
  ///
  /// - Parameters:
  ///   - name: The name, which reports show.
  ///   - interval: The time from the opening of the store to the first run, and from the end of a run to the next one. It must
  ///     be greater than zero.
  ///   - make: A closure that creates the object in the first run. If it throws, the next run repeats it.
  ///   - run: A closure that does the work with the object. Its task is cancelled at the shutdown, which waits for its end.
  public init<Object: Sendable>(
    _ name: String, every interval: Duration, making make: @escaping @Sendable (Store) async throws -> Object,
    run: @escaping @Sendable (Object) async throws -> Void
  ) {
    self.init(name, every: interval, firstDelay: { interval }) {
      let made = Locked<Object?>(nil)
      return { store in
        let object: Object
        if let earlier = made.withLock({ $0 }) {
          object = earlier
        } else {
          object = try await make(store)
          made.withLock { $0 = object }
        }
        try await run(object)
      }
    }
  }

  init(
    _ name: String, every interval: Duration, firstDelay: @escaping @Sendable () throws -> Duration,
    makeRun: @escaping @Sendable () -> @Sendable (Store) async throws -> Void
  ) {
    self.name = name
    self.interval = interval
    self.firstDelay = firstDelay
    self.makeRun = makeRun
  }
}

extension StoreTask where Store: ExpirableStore {
  /// A task that removes expired entries; see `ExpirableStore.purgeExpired(limit:)`.
  ///
  /// - Parameter interval: The time from the end of a run to the next one.
  public static func purging(every interval: Duration) -> StoreTask {
    StoreTask("purge", every: interval) { store in try await store.purgeExpired() }
  }
}

extension StoreTask where Store: MaintainableStore {
  /// A task that returns free space to the file system; see `MaintainableStore.compact()`.
  ///
  /// - Parameter interval: The time from the end of a run to the next one.
  public static func compacting(every interval: Duration) -> StoreTask {
    StoreTask("compact", every: interval) { store in try await store.compact() }
  }
}
#endif
