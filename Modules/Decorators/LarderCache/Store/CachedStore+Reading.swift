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
    if policy != .reload, let (copy, isDue) = cache.copy(of: key) {
      if isDue, policy != .cacheOnly { refresh([(key, copy)]) }
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
  /// Those that the cache does not have are read from the base in one call, but for those that other readers are
  /// loading already.
  ///
  /// - Parameter keys: The keys, in any order; one may stand more than once.
  /// - Returns: One slot for each key.
  /// - Throws: As `DataStore`; `CancellationError` where the task is cancelled while it waits for the base.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await values(forKeys: keys, policy: .cacheElseLoad)
  }

  /// Reads the values of several keys, as they are at one moment, from the cache or the base, as a policy tells.
  ///
  /// - Parameters:
  ///   - keys: The keys, in any order; one may stand more than once.
  ///   - policy: Where the values come from.
  /// - Returns: One slot for each key: the value, or `nil` where the key is missing, or where there is no copy and the
  ///   policy is ``LoadPolicy/cacheOnly``.
  /// - Throws: As `DataStore`; `CancellationError` where the task is cancelled while it waits for the base.
  public func values(forKeys keys: [StoreKey], policy: LoadPolicy) async throws -> [Value?] {
    try checkOpen(for: .values)
    var due: [(StoreKey, CachedCopy)] = []
    let found = keys.map { key -> CachedCopy? in
      guard policy != .reload, let (copy, isDue) = cache.copy(of: key) else { return nil }
      if isDue { due.append((key, copy)) }
      return copy
    }
    if policy == .cacheOnly {
      try ownInformation.check(keys, for: .values)
      return zip(keys, found).map { key, copy in
        copy.flatMap { cache.isStillThere($0, key) ? $0.value : nil }.map(value)
      }
    }
    // Not before the copies were looked at again, or what comes of it would displace them.
    defer { refresh(due) }
    if !found.contains(where: { $0 == nil }), areStillThere(found, keys) { return found.map { $0?.value.map(value) } }
    return try await running(.values) { try await load(keys, found, isReload: policy == .reload) }
  }

  /// Reads the first entries of a range from the base; see `DataStore`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  /// Reads the first keys of a range from the base; see `DataStore`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  /// Counts the entries of a range in the base; see `DataStore`.
  public func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  private func areStillThere(_ found: [CachedCopy?], _ keys: [StoreKey]) -> Bool {
    // A copy that stands alone is of one moment anyway.
    keys.count == 1 || zip(keys, found).allSatisfy { key, copy in copy.map { cache.isStillThere($0, key) } ?? true }
  }

  // MARK: Loading one key

  /// Reads the value of a key of which the cache has no copy.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - isReload: Whether nothing older may stay in the cache.
  ///   - isRetry: Whether a load that this reader joined has failed by a key that it does not ask for.
  private func load(_ key: StoreKey, isReload: Bool, isRetry: Bool = false) async throws -> (any CachedValue)? {
    // Noted before it is known whether there will be a load: one that leads must not be left without it.
    guard operations.begin() else { throw ownInformation.closedError(for: .value) }
    switch cache.beginReading(key, isReload: isReload, makeLoad: { SharedLoad.Part(load: SharedLoad(), place: 0) }) {
    case .found(let copy):
      operations.end()
      return copy.value
    case .base(.direct):
      defer { operations.end() }
      let box = try await readBase([key])[0]
      if isReload { cache.end(nil, of: key, isReload: true, keeping: nil) }
      return box
    case .base(.joining(let fill, let part)):
      cache.end(fill)
      operations.end()
      do {
        return try await part.value()
      } catch  where part.load.keys.count > 1 && isFault(error, ofOthersThan: [key]) {
        // Loaded once more, so that all whom this concerns share the load; then it is read without any others.
        guard isRetry else { return try await load(key, isReload: false, isRetry: true) }
        return try await running(.value) { try await readBase([key])[0] }
      }
    case .base(.leading(let fill, let part)):
      start(part.load, of: [key], [fill], isReload: isReload)
      return try await part.value()
    }
  }

  /// Whether an error says that it is about keys which are not among some, so that those may be read without them.
  ///
  /// An error that names no key, such as that of a base which is down, is about all of them.
  private func isFault(_ error: any Error, ofOthersThan keys: [StoreKey]) -> Bool {
    guard let error = error as? StoreError else { return false }
    if let key = error.key, keys.contains(key) { return false }
    if let lost = (error.underlying as? any UnreadableKeysError)?.keys { return !keys.contains(where: lost.contains) }
    return error.key != nil
  }

  private func readBase(_ keys: [StoreKey]) async throws -> SharedLoad.Values {
    cache.counters.loads.add(1, ordering: .relaxed)
    do {
      if keys.count == 1 { return [try await base.value(forKey: keys[0]).map(box)] }
      return try await base.values(forKeys: keys).map { $0.map(box) }
    } catch {
      cache.counters.loadFailures.add(1, ordering: .relaxed)
      throw error
    }
  }

  // MARK: Loading for several readers

  /// Starts a load in a task of its own, which ends what was noted in ``operations``.
  ///
  /// The task belongs to no reader, so nobody who is cancelled cancels it, but it has the task-locals of the one who
  /// started it. It begins on that reader's thread, where the system can, and goes on there until it first waits.
  private func start(
    _ load: SharedLoad, of keys: [StoreKey], _ fills: [CopyCache.Keys.Fill?], isReload: Bool
  ) {
    let work: @Sendable () async -> Void = { [self] in
      await run(load, of: keys, fills, isReload: isReload)
      operations.end()
    }
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      load.begin(in: Task.immediate { await work() })
    } else {
      load.begin(in: Task { await work() })
    }
  }

  /// Loads copies anew behind a reader, but for those that are gone, being loaded or written.
  private func refresh(_ due: [(key: StoreKey, copy: CachedCopy)]) {
    guard !due.isEmpty, operations.begin() else { return }
    guard let allowed = cache.beginRefresh(of: due.map(\.key)) else { return operations.end() }
    let load = SharedLoad()
    var fills: [CopyCache.Keys.Fill] = []
    for (key, copy) in due where allowed.contains(key) {
      let part = SharedLoad.Part(load: load, place: fills.count)
      if let fill = cache.beginRefreshing(key, copy, part) { fills.append(fill) }
    }
    // Somebody else loads them, writes them or has removed them.
    guard !fills.isEmpty else {
      cache.endRefresh(of: [], failure: nil)
      return operations.end()
    }
    // Not begun on the thread of the reader: it would wait for a base whose reads never suspend.
    let task = Task { [self, fills] in
      let keys = fills.map(\.key)
      let failure = await run(load, of: keys, fills, isReload: false)
      cache.endRefresh(of: keys, failure: failure)
      operations.end()
    }
    load.begin(in: task)
  }

  /// Makes a load.
  ///
  /// - Parameters:
  ///   - load: What others wait for.
  ///   - keys: The keys that it reads.
  ///   - fills: What each of them has begun with; `nil` for one that is busy.
  ///   - isReload: Whether nothing older may stay in the cache.
  /// - Returns: What the base threw; `nil` where it was read.
  @discardableResult
  private func run(
    _ load: SharedLoad, of keys: [StoreKey], _ fills: [CopyCache.Keys.Fill?], isReload: Bool
  ) async -> (any Error)? {
    do {
      let boxes = keys.isEmpty ? [] : try await readBase(keys)
      for (index, key) in keys.enumerated() {
        cache.end(fills[index], of: key, isReload: isReload, keeping: makeCopy(of: boxes[index], forKey: key))
      }
      load.finish(.success(boxes), of: keys)
      return nil
    } catch {
      for case let fill? in fills { cache.end(fill) }
      load.finish(.failure(error), of: keys)
      return error
    }
  }

  // MARK: Loading several keys

  /// Reads the values of keys of which the cache does not have all.
  ///
  /// They are those of one moment: the one when this reader's own load reads the base, or any other after all have been
  /// looked at. A copy was the value of its key at that moment if it is still there afterwards, and so was what a load
  /// brings that others have begun, if no write of its key has begun by then.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - found: The copies that the cache has of them.
  ///   - isReload: Whether nothing older may stay in the cache.
  ///   - isRetry: Whether a load that this reader joined has failed by a key that it does not ask for.
  private func load(
    _ keys: [StoreKey], _ found: [CachedCopy?], isReload: Bool, isRetry: Bool = false
  ) async throws -> [Value?] {
    // One that the base refuses must not spoil the load for those who join it.
    try ownInformation.check(keys, for: .values)
    let own = SharedLoad()
    var ownKeys: [StoreKey] = []
    var ownFills: [CopyCache.Keys.Fill?] = []
    var joined: [CopyCache.Keys.Fill] = []
    var copies: [StoreKey: CachedCopy] = [:]
    var parts: [StoreKey: SharedLoad.Part] = [:]
    for (key, copy) in zip(keys, found) where copies[key] == nil && parts[key] == nil {
      copies[key] = copy
      guard copy == nil else { continue }
      let ownPart = SharedLoad.Part(load: own, place: ownKeys.count)
      switch cache.beginReading(key, isReload: isReload, makeLoad: { ownPart }) {
      case .found(let copy):
        copies[key] = copy
      case .base(.joining(let fill, let part)):
        joined.append(fill)
        parts[key] = part
      case .base(.leading(let fill, _)):
        ownKeys.append(key)
        ownFills.append(fill)
        parts[key] = ownPart
      case .base(.direct):
        ownKeys.append(key)
        ownFills.append(nil)
        parts[key] = ownPart
      }
    }
    // Nobody can join a load of busy keys alone, and once closing has begun nobody comes.
    if ownFills.contains(where: { $0 != nil }), operations.begin() {
      start(own, of: ownKeys, ownFills, isReload: isReload)
    } else {
      await run(own, of: ownKeys, ownFills, isReload: isReload)
    }
    var boxes: [StoreKey: (any CachedValue)?] = [:]
    var isOneMoment = true
    var isAnyUnread = false
    var failure: (any Error)?
    for (key, part) in parts where failure == nil {
      do {
        boxes.updateValue(try await part.value(), forKey: key)
      } catch
        where !part.load.keys.allSatisfy({ parts[$0] != nil }) && isFault(error, ofOthersThan: Array(parts.keys))
      {
        isAnyUnread = true
      } catch {
        failure = error
      }
    }
    for fill in joined where !cache.end(fill) { isOneMoment = false }
    if let failure { throw failure }
    if isAnyUnread, !isRetry {
      // Loaded once more, so that all whom this concerns share the load; then they are read without any others.
      return try await load(keys, keys.map { copies[$0] }, isReload: isReload, isRetry: true)
    }
    isOneMoment = isOneMoment && !isAnyUnread && copies.allSatisfy { key, copy in cache.isStillThere(copy, key) }
    // What stands alone is of one moment anyway.
    if isOneMoment || (parts.count + copies.count == 1 && !isAnyUnread) {
      return keys.map { key in (copies[key].map(\.value) ?? boxes[key] ?? nil).map(value) }
    }
    cache.counters.passedOver.add(copies.count, ordering: .relaxed)
    return try await readBase(keys).map { $0.map(value) }
  }
}
