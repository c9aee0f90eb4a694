public import Larder
import Synchronization

extension CachedStore {
  /// Reads the value of one key; see `DataStore`.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` where the key is missing.
  /// - Throws: As `DataStore`; `CancellationError` where the task is cancelled while it waits for the base.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await value(forKey: key, policy: .cacheElseLoad)
  }

  /// Reads the value of one key from the cache or the base, as a policy tells.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - policy: Where the value comes from.
  /// - Returns: The value, or `nil` where the key is missing, or where there is no copy and the policy is
  ///   ``LoadPolicy/cacheOnly``.
  /// - Throws: As `DataStore`; `CancellationError` where the task is cancelled while it waits for the base.
  public func value(forKey key: StoreKey, policy: LoadPolicy) async throws -> Value? {
    try checkOpen(for: .value)
    if policy != .reload, let copy = usableCopy(of: key, policy) { return copy.value }
    guard policy != .cacheOnly else {
      try ownInformation.check(key, for: .value)
      return nil
    }
    return try await load(key, isReload: policy == .reload)
  }

  /// Reads the values of several keys as they are at one moment; see `DataStore`.
  ///
  /// Those that the cache does not have are read from the base in one call.
  ///
  /// - Parameter keys: The keys, in any order; one may stand more than once.
  /// - Returns: One slot for each key.
  /// - Throws: As `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await values(forKeys: keys, policy: .cacheElseLoad)
  }

  /// Reads the values of several keys, as they are at one moment, from the cache or the base, as a policy tells.
  ///
  /// - Parameters:
  ///   - keys: The keys, in any order; one may stand more than once.
  ///   - policy: Where the values come from. What is missing in the cache is read from the base in one call.
  /// - Returns: One slot for each key: the value, or `nil` where the key is missing, or where there is no copy and the policy is
  ///   ``LoadPolicy/cacheOnly``.
  /// - Throws: As `DataStore`.
  public func values(forKeys keys: [StoreKey], policy: LoadPolicy) async throws -> [Value?] {
    try checkOpen(for: .values)
    let found = keys.map { policy == .reload ? nil : usableCopy(of: $0, policy) }
    if policy == .cacheOnly {
      try ownInformation.check(keys, for: .values)
      return zip(keys, found).map { key, copy in copy.flatMap { isStillThere($0, key) ? $0.value : nil } }
    }
    if !found.contains(where: { $0 == nil }), areStillThere(found, keys) { return found.map { $0?.value } }
    return try await running(.values) { try await load(keys, found, isReload: policy == .reload) }
  }

  /// Reads the first entries of a range from the base; see `DataStore`.
  ///
  /// They are kept in the cache where ``CachedStoreOptions/keepsScannedEntries`` says so.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    guard options.keepsScannedEntries else { return try await base.entries(in: range, limit: limit, order: order) }
    return try await running(.entries) {
      let scans = shards.map { shard in shard.withLock { $0.busy.beginScan() } }
      let entries = try await base.entries(in: range, limit: limit, order: order)
      for entry in entries {
        let index = shardIndex(of: entry.key)
        guard let scan = scans[index], copies.peekValue(forKey: entry.key) == nil else { continue }
        let copy = makeCopy(of: entry.value, forKey: entry.key)
        LateRelease.after {
          shards[index].withLock { state in
            if state.busy.allows(scan) { keep(copy, forKey: entry.key, in: &state) }
          }
        }
      }
      return entries
    }
  }

  /// Reads the first keys of a range from the base; see `DataStore`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  /// Counts the entries of a range in the base; see `DataStore`.
  public func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  // MARK: Copies

  /// The copy of a key, where the policy allows to use it; one that is due is loaded anew behind.
  private func usableCopy(of key: StoreKey, _ policy: LoadPolicy) -> CachedCopy<Value>? {
    guard let copy = copies.value(forKey: key) else { return nil }
    switch stage(of: copy) {
    case .fresh:
      return copy
    case .due:
      if policy != .cacheOnly { refresh(key) }
      return copy
    case .old where policy == .staleWhileRevalidate:
      refresh(key)
      return copy
    case .old, .over:
      counters.passedOver.add(1, ordering: .relaxed)
      return nil
    }
  }

  /// Whether a copy has been in the cache without a break: then the base has had that value all the time.
  private func isStillThere(_ copy: CachedCopy<Value>, _ key: StoreKey) -> Bool {
    copies.peekValue(forKey: key)?.stamp == copy.stamp
  }

  private func areStillThere(_ found: [CachedCopy<Value>?], _ keys: [StoreKey]) -> Bool {
    // A copy that stands alone is of one moment anyway.
    keys.count == 1 || zip(keys, found).allSatisfy { key, copy in copy.map { isStillThere($0, key) } ?? true }
  }

  // MARK: Loading one key

  private func load(_ key: StoreKey, isReload: Bool) async throws -> Value? {
    if isReload { counters.reloads.add(1, ordering: .relaxed) }
    // Noted before it is known whether there will be a load: one that leads must not be left without it.
    guard operations.begin() else { throw ownInformation.closedError(for: .value) }
    let reading = shard(of: key).withLock { state in
      isReload
        ? state.busy.beginReloading(key, makeLoad: SharedLoad.init)
        : state.busy.beginReading(key, makeLoad: SharedLoad.init)
    }
    switch reading {
    case .direct:
      defer { operations.end() }
      return try await loadDirectly(key)
    case .joining(let load):
      operations.end()
      counters.sharedLoads.add(1, ordering: .relaxed)
      return try await load.value()
    case .leading(let fill, let load):
      start(load, fill, looksAgain: !isReload)
      return try await load.value()
    }
  }

  /// Reads a key that is busy.
  private func loadDirectly(_ key: StoreKey) async throws -> Value? {
    counters.loads.add(1, ordering: .relaxed)
    do {
      return try await base.value(forKey: key)
    } catch {
      counters.loadFailures.add(1, ordering: .relaxed)
      throw error
    }
  }

  /// Loads a key anew behind a reader, unless it is being loaded or written.
  private func refresh(_ key: StoreKey) {
    guard operations.begin() else { return }
    let begun = shard(of: key).withLock { $0.busy.beginRefreshing(key, makeLoad: SharedLoad.init) }
    guard let (fill, load) = begun else { return operations.end() }
    start(load, fill, looksAgain: false)
  }

  /// Starts a load, which ends what was noted in ``operations``.
  private func start(_ load: SharedLoad<Value>, _ fill: BusyKeys<SharedLoad<Value>>.Fill, looksAgain: Bool) {
    startImmediately { [self] in
      defer { operations.end() }
      // Another load may have ended after its reader asked the cache and before it began this one. The copy is good for
      // all who join: the load began after the last write, and the copy is there after that.
      if looksAgain, let copy = copies.peekValue(forKey: fill.key), stage(of: copy) != .over, stage(of: copy) != .old {
        counters.foundLate.add(1, ordering: .relaxed)
        _ = shard(of: fill.key).withLock { $0.busy.end(fill) }
        return load.finish(.success(copy.value))
      }
      counters.loads.add(1, ordering: .relaxed)
      do {
        let value = try await base.value(forKey: fill.key)
        end(fill, keeping: value)
        load.finish(.success(value))
      } catch {
        counters.loadFailures.add(1, ordering: .relaxed)
        _ = shard(of: fill.key).withLock { $0.busy.end(fill) }
        load.finish(.failure(error))
      }
    }
  }

  /// Ends a base read, and keeps what it found where it may.
  private func end(_ fill: BusyKeys<SharedLoad<Value>>.Fill, keeping value: Value?) {
    let copy = makeCopy(of: value, forKey: fill.key)
    LateRelease.after {
      shard(of: fill.key).withLock { state in
        if state.busy.end(fill) { keep(copy, forKey: fill.key, in: &state) }
      }
    }
  }

  // MARK: Loading several keys

  private func load(_ keys: [StoreKey], _ found: [CachedCopy<Value>?], isReload: Bool) async throws -> [Value?] {
    var places: [StoreKey: Int] = [:]
    var missing: [StoreKey] = []
    for (key, copy) in zip(keys, found) where copy == nil && places[key] == nil {
      places[key] = missing.count
      missing.append(key)
    }
    if isReload { counters.reloads.add(keys.count, ordering: .relaxed) }
    let fills = missing.map { key in
      shard(of: key).withLock { state in
        if isReload { state.busy.invalidate(key) }
        return state.busy.beginFill(of: key)
      }
    }
    counters.loads.add(1, ordering: .relaxed)
    do {
      var values: [Value?] = []
      // Where all were found one of them has changed since.
      let loaded = missing.isEmpty ? [] : try await base.values(forKeys: missing)
      if !missing.isEmpty && areStillThere(found, keys) {
        values = zip(keys, found).map { key, copy in copy?.value ?? places[key].flatMap { loaded[$0] } }
      } else {
        counters.passedOver.add(found.count { $0 != nil }, ordering: .relaxed)
        values = try await base.values(forKeys: keys)
      }
      for (fill, key) in zip(fills, missing) {
        guard let fill, let index = keys.firstIndex(of: key) else { continue }
        end(fill, keeping: values[index])
      }
      return values
    } catch {
      counters.loadFailures.add(1, ordering: .relaxed)
      for case let fill? in fills { _ = shard(of: fill.key).withLock { $0.busy.end(fill) } }
      throw error
    }
  }
}
