public import Larder

extension TieredStore {
  /// Returns the value of a key; see `DataStore`.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` if the key is missing.
  /// - Throws: The errors of `DataStore`; `CancellationError` if the task is cancelled while it waits.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await value(forKey: key, policy: .cacheElseLoad)
  }

  /// Returns the value of a key, from the cache or the base as a policy specifies.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - policy: The policy that selects the source of the value.
  /// - Returns: The value, or `nil` if the key is missing, or if it is not cached and the policy is
  ///   ``LoadPolicy/cacheOnly``.
  /// - Throws: The errors of `DataStore`; `CancellationError` if the task is cancelled while it waits.
  public func value(forKey key: StoreKey, policy: LoadPolicy) async throws -> Value? {
    try await values(forKeys: [key], policy: policy, as: .value)[0]
  }

  /// Returns the values of several keys in one snapshot; see `DataStore`.
  ///
  /// If one of them is not cached, all are read from the base in one call.
  ///
  /// - Parameter keys: The keys, in any order. A key may occur more than once.
  /// - Returns: One slot for each key.
  /// - Throws: The errors of `DataStore`; `CancellationError` if the task is cancelled while it waits.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await values(forKeys: keys, policy: .cacheElseLoad)
  }

  /// Returns the values of several keys in one snapshot, from the cache or the base as a policy specifies.
  ///
  /// - Parameters:
  ///   - keys: The keys, in any order. A key may occur more than once.
  ///   - policy: The policy that selects the source of the values.
  /// - Returns: One slot for each key, with its value, or `nil` if the key is missing, or if it is not cached and the
  ///   policy is ``LoadPolicy/cacheOnly``.
  /// - Throws: The errors of `DataStore`; `CancellationError` if the task is cancelled while it waits.
  public func values(forKeys keys: [StoreKey], policy: LoadPolicy) async throws -> [Value?] {
    try await values(forKeys: keys, policy: policy, as: .values)
  }

  private func values(
    forKeys keys: [StoreKey], policy: LoadPolicy, as operation: StoreOperation
  ) async throws -> [Value?] {
    try information.check(keys, for: operation)
    return try await operations.run(operation, of: information) {
      // Before the copies are read, so that each was current for at most the lag before this read began.
      let isCurrent = isCurrent
      if policy == .cacheOnly, !isCurrent { return keys.map { _ in nil } }
      if policy != .reload, isCurrent {
        // The cache holds an entry only while no write of its key is running in the base. So each entry that is found was
        // that of the base at the moment of the snapshot.
        let (found, time) = (try await usableCopies(forKeys: keys), now())
        let hits = found.count { $0 != nil }
        state.withLock {
          $0.statistics.hits += hits
          $0.statistics.misses += found.count - hits
        }
        if hits == found.count || policy == .cacheOnly {
          if policy == .cacheElseLoad { refresh(zip(keys, found).filter { isDue($1, at: time) }.map(\.0)) }
          return found.map { $0?.value }
        }
      }
      return try await load(keys, isReload: policy == .reload || !isCurrent)
    }
  }

  // MARK: Copies

  /// Returns the copies of some keys that are in the cache and not too old, in one snapshot.
  private func usableCopies(forKeys keys: [StoreKey]) async throws -> [CachedCopy<Value>?] {
    var found = [CachedCopy<Value>?](repeating: nil, count: keys.count)
    // A write that has not removed its copy yet takes the report of another host's write for its own.
    let places = state.withLock { state in
      keys.indices.filter { isCacheable(keys[$0]) && !state.busy.isBusy(keys[$0]) }
    }
    guard !places.isEmpty else { return found }
    do {
      let copies = try await copies.values(forKeys: places.map { keys[$0] })
      let time = now()
      state.withLock { state in
        for (place, copy) in zip(places, copies) {
          guard let copy, isUsable(copy, at: time), state.reported.permits(copy.time, of: keys[place]) else { continue }
          found[place] = copy
        }
      }
    } catch {
      if Task.isCancelled { throw error }
      report(error)
    }
    return found
  }

  /// Returns whether a key fits into the cache.
  func isCacheable(_ key: StoreKey) -> Bool { key.count <= copies.information.maximumKeyLength }

  private func isUsable(_ copy: CachedCopy<Value>, at time: Int64) -> Bool {
    let age = Duration.microseconds(time.subtractingReportingOverflow(copy.time).partialValue)
    guard age >= .zero else { return false }
    if let limit = configuration.timeToLive, age >= limit { return false }
    if copy.value == nil { return configuration.negativeTimeToLive.map { age < $0 } ?? false }
    return true
  }

  private func isDue(_ copy: CachedCopy<Value>?, at time: Int64) -> Bool {
    guard let copy, let limit = configuration.refreshAfter else { return false }
    return .microseconds(time.subtractingReportingOverflow(copy.time).partialValue) >= limit
  }

  // MARK: Loading

  /// Loads the values of keys that are not all cached, for this reader and those that join it.
  private func load(_ keys: [StoreKey], isReload: Bool) async throws -> [Value?] {
    let load = SharedLoad()
    var indices: [StoreKey: Int] = [:]
    var fills: [Keys.Fill?] = []
    for key in keys where indices[key] == nil {
      let part = SharedLoad.Part(load: load, index: fills.count)
      let reading = state.withLock { state in
        isReload
          ? state.busy.beginReloading(key, makeLoad: { part }) : state.busy.beginReading(key, makeLoad: { part })
      }
      switch reading {
      case .direct:
        fills.append(nil)
      case .leading(let fill, _):
        fills.append(fill)
      case .joining(let fill, let part):
        _ = state.withLock { $0.busy.end(fill) }
        // Several keys are one snapshot only if they are read together.
        if keys.count == 1 { return [try await join(part, key)] }
        fills.append(nil)
      }
      indices[key] = fills.count - 1
    }
    let ordered = indices.sorted { $0.value < $1.value }.map(\.key)
    start(load, of: ordered, fills, isReload: isReload)
    let boxes = try await load.values()
    return keys.map { key in indices[key].flatMap { boxes[$0] }.map(value) }
  }

  /// Waits for the load of another reader.
  private func join(_ part: SharedLoad.Part, _ key: StoreKey) async throws -> Value? {
    state.withLock { $0.statistics.sharedLoads += 1 }
    do {
      return try await part.value().map(value)
    } catch  where part.load.keys.count > 1 {
      // Another key may be at fault.
      return try await readBase([key])[0].map(value)
    }
  }

  /// Starts a load in a task of its own, so the cancellation of a reader does not cancel it for others.
  ///
  /// The caller is a running operation.
  private func start(_ load: SharedLoad, of keys: [StoreKey], _ fills: [Keys.Fill?], isReload: Bool) {
    // Closing may have begun, and then waits for the caller, which waits for the load.
    let isCounted = operations.begin()
    let task = Task { [self] in
      await run(load, of: keys, fills, isReload: isReload)
      if isCounted { operations.end() }
    }
    load.begin(in: task)
  }

  /// Loads keys again in the background, unless others do or a load has failed a short time ago.
  private func refresh(_ keys: [StoreKey]) {
    for key in Set(keys) {
      let time = Duration.microseconds(now())
      guard operations.begin() else { return }
      let part = SharedLoad.Part(load: SharedLoad(), index: 0)
      let fill = state.withLock { state -> Keys.Fill? in
        guard state.refreshes.begin([key], at: time) != nil else { return nil }
        guard let (fill, _) = state.busy.beginRefreshing(key, makeLoad: { part }) else {
          state.refreshes.end([key], failure: nil, at: time, pauseEnd: time)
          return nil
        }
        return fill
      }
      guard let fill else {
        operations.end()
        continue
      }
      let task = Task { [self] in
        let failure = await run(part.load, of: [key], [fill], isReload: false)
        let end = Duration.microseconds(now())
        let pause = min(configuration.refreshAfter ?? .zero, .seconds(1))
        state.withLock { $0.refreshes.end([key], failure: failure, at: end, pauseEnd: end + pause) }
        operations.end()
      }
      part.load.begin(in: task)
    }
  }

  /// Performs a load, and copies its results into the cache.
  ///
  /// - Returns: The error of the base, or `nil` if the read succeeded.
  @discardableResult
  private func run(
    _ load: SharedLoad, of keys: [StoreKey], _ fills: [Keys.Fill?], isReload: Bool
  ) async -> (any Error)? {
    if let alone = configuration.loadingAlone, keys.count == 1, !isReload {
      return await run(load, of: keys[0], fills, alone)
    }
    let time = beginCopying()
    let boxes: SharedLoad.Values
    do {
      boxes = try await readBase(keys)
    } catch {
      end(fills)
      load.finish(.failure(error), of: keys)
      return error
    }
    guard isReload else {
      // No reader has to wait for the cache.
      load.finish(.success(boxes), of: keys)
      await copy(keys, fills, boxes, at: time)
      return nil
    }
    do {
      try await replace(keys, fills, boxes, at: time)
      load.finish(.success(boxes), of: keys)
      return nil
    } catch {
      load.finish(.failure(error), of: keys)
      return error
    }
  }

  /// Performs the load of a key while no other one that the configuration excludes runs, unless one has just filled the cache.
  ///
  /// - Returns: The error of the base or of the closure of the configuration, or `nil` if there is a result.
  private func run(
    _ load: SharedLoad, of key: StoreKey, _ fills: [Keys.Fill?],
    _ alone: @Sendable (StoreKey, @Sendable () async throws -> Void) async throws -> Void
  ) async -> (any Error)? {
    let hasResult = Locked(false)
    do {
      try await alone(key) { [self] in
        let copy = isCurrent ? try await usableCopies(forKeys: [key])[0] : nil
        let time = beginCopying()
        let boxes = if let copy { [copy.value.map(box)] } else { try await readBase([key]) }
        hasResult.withLock { $0 = true }
        load.finish(.success(boxes), of: [key])
        // The next one that loads the key finds the copy, because the closure ends afterward.
        if copy == nil { await self.copy([key], fills, boxes, at: time) } else { end(fills) }
      }
    } catch {
      // A lock that is lost after the load takes nothing away from its readers.
      if hasResult.withLock(\.self) { return nil }
      end(fills)
      load.finish(.failure(error), of: [key])
      return error
    }
    guard !hasResult.withLock(\.self) else { return nil }
    let error = StoreError(
      .unsupported, during: .value, store: information.name, key: key,
      message: "the closure loadingAlone returned without having called its argument")
    end(fills)
    load.finish(.failure(error), of: [key])
    return error
  }

  private func readBase(_ keys: [StoreKey]) async throws -> SharedLoad.Values {
    state.withLock { $0.statistics.loads += 1 }
    do {
      if keys.count == 1 { return [try await base.value(forKey: keys[0]).map(box)] }
      return try await base.values(forKeys: keys).map { $0.map(box) }
    } catch {
      state.withLock { $0.statistics.loadFailures += 1 }
      throw error
    }
  }

  func box(_ value: Value) -> any CachedValue { ValueBox(value) }

  func value(of box: any CachedValue) -> Value {
    // Every box of a load of this store was created by `box(_:)` of this store.
    unsafeDowncast(box, to: ValueBox<Value>.self).value
  }
}
