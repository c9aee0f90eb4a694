public import Larder
import Synchronization

extension CachedStore {
  /// Reads the value of one key; see `DataStore`.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` where the key is missing.
  /// - Throws: As `DataStore`; `CancellationError` where the task is cancelled while it waits for the base.
  @inlinable
  public func value(forKey key: StoreKey) async throws -> Value? {
    let look = cache.look(for: key)
    if case .value(let box) = look { return value(of: box) }
    return try await value(forKey: key, after: look)
  }

  /// Reads the value of a key of which the first look found no copy.
  @usableFromInline
  func value(forKey key: StoreKey, after look: CopyCache.FirstLook) async throws -> Value? {
    if case .none = look { return try await value(forKey: key, policy: .cacheElseLoad) }
    return try await load(key, isReload: false).map(value)
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
    if policy != .reload, let (copy, isDue) = copy(of: key, policy) {
      if isDue { refresh(key) }
      return copy.value.map(value)
    }
    guard policy != .cacheOnly else {
      try ownInformation.check(key, for: .value)
      return nil
    }
    return try await load(key, isReload: policy == .reload).map(value)
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
  /// - Returns: One slot for each key: the value, or `nil` where the key is missing, or where there is no copy and the
  ///   policy is ``LoadPolicy/cacheOnly``.
  /// - Throws: As `DataStore`.
  public func values(forKeys keys: [StoreKey], policy: LoadPolicy) async throws -> [Value?] {
    try checkOpen(for: .values)
    var due: [StoreKey] = []
    let found = keys.map { key -> CachedCopy? in
      guard policy != .reload, let (copy, isDue) = copy(of: key, policy) else { return nil }
      if isDue { due.append(key) }
      return copy
    }
    if policy == .cacheOnly {
      try ownInformation.check(keys, for: .values)
      return zip(keys, found).map { key, copy in
        copy.flatMap { cache.isStillThere($0, key) ? $0.value : nil }.map(value)
      }
    }
    // Not before the copies were looked at again, or what comes of it would displace them.
    defer { for key in due { refresh(key) } }
    if !found.contains(where: { $0 == nil }), areStillThere(found, keys) { return found.map { $0?.value.map(value) } }
    return try await running(.values) { try await load(keys, found, isReload: policy == .reload) }
  }

  /// Reads the first entries of a range from the base; see `DataStore`.
  ///
  /// They are kept in the cache where ``CachedStoreOptions/keepsScannedEntries`` says so.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    guard options.keepsScannedEntries else { return try await base.entries(in: range, limit: limit, order: order) }
    return try await running(.entries) {
      let scans = cache.beginScan()
      let entries = try await base.entries(in: range, limit: limit, order: order)
      for entry in entries {
        cache.keep(makeCopy(of: box(entry.value), forKey: entry.key), forKey: entry.key, of: scans)
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

  /// The copy of a key, where the policy allows to use it, and whether it is to be loaded anew behind.
  private func copy(of key: StoreKey, _ policy: LoadPolicy) -> (copy: CachedCopy, isDue: Bool)? {
    guard let (copy, isDue) = cache.copy(of: key, allowsOld: policy == .staleWhileRevalidate) else { return nil }
    return (copy, isDue && policy != .cacheOnly)
  }

  private func areStillThere(_ found: [CachedCopy?], _ keys: [StoreKey]) -> Bool {
    // A copy that stands alone is of one moment anyway.
    keys.count == 1 || zip(keys, found).allSatisfy { key, copy in copy.map { cache.isStillThere($0, key) } ?? true }
  }

  // MARK: Loading one key

  private func load(_ key: StoreKey, isReload: Bool) async throws -> (any CachedValue)? {
    // Noted before it is known whether there will be a load: one that leads must not be left without it.
    guard operations.begin() else { throw ownInformation.closedError(for: .value) }
    switch isReload ? cache.beginReloading(key) : cache.beginReading(key) {
    case .direct:
      defer { operations.end() }
      return try await readBase(key)
    case .joining(let load):
      operations.end()
      cache.counters.sharedLoads.add(1, ordering: .relaxed)
      return try await load.value()
    case .leading(let fill, let load):
      start(load, fill, looksAgain: !isReload)
      return try await load.value()
    }
  }

  private func readBase(_ key: StoreKey) async throws -> (any CachedValue)? {
    cache.counters.loads.add(1, ordering: .relaxed)
    do {
      return try await base.value(forKey: key).map(box)
    } catch {
      cache.counters.loadFailures.add(1, ordering: .relaxed)
      throw error
    }
  }

  /// Loads a key anew behind a reader, unless it is being loaded or written.
  private func refresh(_ key: StoreKey) {
    guard operations.begin() else { return }
    guard let (fill, load) = cache.beginRefreshing(key) else { return operations.end() }
    start(load, fill, looksAgain: false)
  }

  /// Starts a load, which ends what was noted in ``operations``.
  private func start(_ load: SharedLoad, _ fill: CopyCache.Keys.Fill, looksAgain: Bool) {
    startImmediately { [self] in
      defer { operations.end() }
      // Another load may have ended after its reader asked the cache and before it began this one.
      if looksAgain, let copy = cache.copyFoundLate(of: fill.key) {
        cache.end(fill)
        return load.finish(.success(copy.value))
      }
      do {
        let box = try await readBase(fill.key)
        cache.end(fill, keeping: makeCopy(of: box, forKey: fill.key))
        load.finish(.success(box))
      } catch {
        cache.end(fill)
        load.finish(.failure(error))
      }
    }
  }

  // MARK: Loading several keys

  private func load(_ keys: [StoreKey], _ found: [CachedCopy?], isReload: Bool) async throws -> [Value?] {
    var places: [StoreKey: Int] = [:]
    var missing: [StoreKey] = []
    for (key, copy) in zip(keys, found) where copy == nil && places[key] == nil {
      places[key] = missing.count
      missing.append(key)
    }
    if isReload { cache.counters.reloads.add(keys.count, ordering: .relaxed) }
    let fills = missing.map { cache.beginFill(of: $0, isReload: isReload) }
    cache.counters.loads.add(1, ordering: .relaxed)
    do {
      var boxes: [(any CachedValue)?] = []
      let loaded = missing.isEmpty ? [] : try await base.values(forKeys: missing).map { $0.map(box) }
      // Where nothing is missing, one of those that were found has changed since.
      if !missing.isEmpty && areStillThere(found, keys) {
        boxes = zip(keys, found).map { key, copy in copy?.value ?? places[key].flatMap { loaded[$0] } }
      } else {
        cache.counters.passedOver.add(found.count { $0 != nil }, ordering: .relaxed)
        boxes = try await base.values(forKeys: keys).map { $0.map(box) }
      }
      for (key, box) in zip(keys, boxes) {
        // A key that stands twice has one fill.
        guard let place = places.removeValue(forKey: key), let fill = fills[place] else { continue }
        cache.end(fill, keeping: makeCopy(of: box, forKey: key))
      }
      return boxes.map { $0.map(value) }
    } catch {
      cache.counters.loadFailures.add(1, ordering: .relaxed)
      for case let fill? in fills { cache.end(fill) }
      throw error
    }
  }
}
