public import Larder

extension CachedStore {
  /// Returns the value of a key; see `DataStore`.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value, or `nil` if the key is missing.
  /// - Throws: The errors of `DataStore`; `CancellationError` if the task is cancelled while it waits for the base.
  @inlinable
  public func value(forKey key: StoreKey) async throws -> Value? {
    if isCurrent, let box = cache.plainValue(forKey: key) { return value(of: box) }
    return try await missedValue(forKey: key)
  }

  /// Returns the value of a key after the first lookup did not find it.
  @usableFromInline
  func missedValue(forKey key: StoreKey) async throws -> Value? {
    guard cache.hasPlainEntries, isCurrent else { return try await value(forKey: key, policy: .cacheElseLoad) }
    return try await load(key, isReload: false).map(value)
  }

  /// Returns the value of a key, from the cache or the base as a policy specifies.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - policy: The policy that selects the source of the value.
  /// - Returns: The value, or `nil` if the key is missing, or if it is not cached and the policy is
  ///   ``LoadPolicy/cacheOnly``.
  /// - Throws: The errors of `DataStore`; `CancellationError` if the task is cancelled while it waits for the base.
  public func value(forKey key: StoreKey, policy: LoadPolicy) async throws -> Value? {
    try checkOpen(for: .value)
    // As a reload, because entries and running loads may be older than the reports.
    guard isCurrent else {
      try ownInformation.check(key, for: .value)
      return policy == .cacheOnly ? nil : try await load(key, isReload: true).map(value)
    }
    if policy != .reload, let (entry, isDue) = cache.entry(of: key) {
      if isDue, policy != .cacheOnly { refresh([(key, entry)]) }
      return entry.value.map(value)
    }
    guard policy != .cacheOnly else {
      try ownInformation.check(key, for: .value)
      return nil
    }
    return try await load(key, isReload: policy == .reload).map(value)
  }

  /// Returns the values of several keys in one snapshot; see `DataStore`.
  ///
  /// Keys that are not cached are read from the base in one call, except for those that other readers are already
  /// loading.
  ///
  /// - Parameter keys: The keys, in any order. A key may occur more than once.
  /// - Returns: One slot for each key.
  /// - Throws: The errors of `DataStore`; `CancellationError` if the task is cancelled while it waits for the base.
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
  /// - Throws: The errors of `DataStore`; `CancellationError` if the task is cancelled while it waits for the base.
  public func values(forKeys keys: [StoreKey], policy: LoadPolicy) async throws -> [Value?] {
    try checkOpen(for: .values)
    guard isCurrent else {
      try ownInformation.check(keys, for: .values)
      let nothing = keys.map { _ in nil as CachedEntry? }
      if policy == .cacheOnly { return keys.map { _ in nil } }
      return try await operations.run(.values, of: ownInformation) { try await load(keys, nothing, isReload: true) }
    }
    var due: [(StoreKey, CachedEntry)] = []
    let found = keys.map { key -> CachedEntry? in
      guard policy != .reload, let (entry, isDue) = cache.entry(of: key) else { return nil }
      if isDue { due.append((key, entry)) }
      return entry
    }
    if policy == .cacheOnly {
      try ownInformation.check(keys, for: .values)
      return zip(keys, found).map { key, entry in
        entry.flatMap { cache.isStillThere($0, key) ? $0.value : nil }.map(value)
      }
    }
    // A refresh must not begin before the entries have been checked again, because its results would displace them.
    defer { refresh(due) }
    if !found.contains(where: { $0 == nil }), areStillThere(found, keys) { return found.map { $0?.value.map(value) } }
    return try await operations.run(.values, of: ownInformation) {
      try await load(keys, found, isReload: policy == .reload)
    }
  }

  private func areStillThere(_ found: [CachedEntry?], _ keys: [StoreKey]) -> Bool {
    // A single entry is always a snapshot.
    keys.count == 1 || zip(keys, found).allSatisfy { key, entry in entry.map { cache.isStillThere($0, key) } ?? true }
  }

  // MARK: Loading one key

  /// Loads the value of a key that is not cached.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - isReload: A Boolean value that indicates whether no older value may stay in the cache.
  ///   - isRetry: A Boolean value that indicates whether a load that this reader joined has failed because of another
  ///     key.
  private func load(_ key: StoreKey, isReload: Bool, isRetry: Bool = false) async throws -> (any CachedValue)? {
    // Begun before it is known whether there will be a load, because a load that this reader starts must be counted.
    guard operations.begin() else { throw ownInformation.closedError(for: .value) }
    switch cache.beginReading(key, isReload: isReload, makeLoad: { SharedLoad.Part(load: SharedLoad(), index: 0) }) {
    case .found(let entry):
      operations.end()
      return entry.value
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
        // All readers concerned first share another load. If that fails as well, the key is read alone.
        guard isRetry else { return try await load(key, isReload: false, isRetry: true) }
        return try await operations.run(.value, of: ownInformation) { try await readBase([key])[0] }
      }
    case .base(.leading(let fill, let part)):
      start(part.load, of: [key], [fill], isReload: isReload)
      return try await part.value()
    }
  }

  /// Returns whether an error concerns only other keys than the given ones, so these may be read without them.
  ///
  /// An error that names no key, such as that of an unavailable base, concerns all keys.
  private func isFault(_ error: any Error, ofOthersThan keys: [StoreKey]) -> Bool {
    guard let error = error as? StoreError else { return false }
    if let key = error.key, keys.contains(key) { return false }
    if let lost = (error.underlying as? any UnreadableKeysError)?.keys { return !keys.contains(where: lost.contains) }
    return error.key != nil
  }

  private func readBase(_ keys: [StoreKey]) async throws -> SharedLoad.Values {
    cache.count { $0.loads += 1 }
    do {
      if keys.count == 1 { return [try await base.value(forKey: keys[0]).map(box)] }
      return try await base.values(forKeys: keys).map { $0.map(box) }
    } catch {
      cache.count { $0.loadFailures += 1 }
      throw error
    }
  }

  // MARK: Loading for several readers

  /// Starts a load in its own task, which also ends the operation counted in ``operations``.
  ///
  /// The task belongs to no reader, so the cancellation of a reader does not cancel it, but it inherits the task-local
  /// values of the reader that starts it. If the system supports it, the task begins on that reader's thread and runs
  /// there until it first suspends.
  private func start(
    _ load: SharedLoad, of keys: [StoreKey], _ fills: [EntryCache.Keys.Fill?], isReload: Bool
  ) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      load.begin(in: Task.immediate { [self] in await runCounted(load, of: keys, fills, isReload: isReload) })
    } else {
      load.begin(in: Task { [self] in await runCounted(load, of: keys, fills, isReload: isReload) })
    }
  }

  /// Performs a load, and then ends the operation counted in ``operations``.
  ///
  /// It is a method, because a closure that both tasks call would be an allocation more.
  private func runCounted(
    _ load: SharedLoad, of keys: [StoreKey], _ fills: [EntryCache.Keys.Fill?], isReload: Bool
  ) async {
    await run(load, of: keys, fills, isReload: isReload)
    operations.end()
  }

  /// Reloads cached entries in the background, except for those that are gone, being loaded, or being written.
  private func refresh(_ due: [(key: StoreKey, entry: CachedEntry)]) {
    guard !due.isEmpty, operations.begin() else { return }
    guard let allowed = cache.beginRefresh(of: due.map(\.key)) else { return operations.end() }
    let load = SharedLoad()
    var fills: [EntryCache.Keys.Fill] = []
    for (key, entry) in due where allowed.contains(key) {
      let part = SharedLoad.Part(load: load, index: fills.count)
      if let fill = cache.beginRefreshing(key, entry, part) { fills.append(fill) }
    }
    // Others are loading or writing these entries, or have removed them.
    guard !fills.isEmpty else {
      cache.endRefresh(of: [], failure: nil)
      return operations.end()
    }
    // Not started on the thread of the reader, which would wait for a base whose reads never suspend.
    let task = Task { [self, fills] in
      let keys = fills.map(\.key)
      let failure = await run(load, of: keys, fills, isReload: false)
      cache.endRefresh(of: keys, failure: failure)
      operations.end()
    }
    load.begin(in: task)
  }

  /// Performs a load.
  ///
  /// - Parameters:
  ///   - load: The load that readers wait for.
  ///   - keys: The keys to read.
  ///   - fills: The fill of each key, or `nil` for a key that is busy.
  ///   - isReload: A Boolean value that indicates whether no older value may stay in the cache.
  /// - Returns: The error of the base, or `nil` if the read succeeded.
  @discardableResult
  private func run(
    _ load: SharedLoad, of keys: [StoreKey], _ fills: [EntryCache.Keys.Fill?], isReload: Bool
  ) async -> (any Error)? {
    do {
      let boxes = keys.isEmpty ? [] : try await readBase(keys)
      for (index, key) in keys.enumerated() {
        cache.end(fills[index], of: key, isReload: isReload, keeping: makeEntry(of: boxes[index], forKey: key))
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

  /// Reads the values of several keys of which not all are cached.
  ///
  /// The values are one snapshot. Its moment is when this reader's own load reads the base, or, without such a load, any
  /// moment after all keys have been looked up. A cached entry was current at that moment if it is still cached
  /// afterward. The result of a load that others have begun was current if no write of its key has begun by then.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - found: The cached entries of the keys.
  ///   - isReload: A Boolean value that indicates whether no older value may stay in the cache.
  ///   - isRetry: A Boolean value that indicates whether a load that this reader joined has failed because of another
  ///     key.
  private func load(
    _ keys: [StoreKey], _ found: [CachedEntry?], isReload: Bool, isRetry: Bool = false
  ) async throws -> [Value?] {
    // A key that the base refuses must not fail the load for the readers that join it.
    try ownInformation.check(keys, for: .values)
    let own = SharedLoad()
    var ownKeys: [StoreKey] = []
    var ownFills: [EntryCache.Keys.Fill?] = []
    var joined: [EntryCache.Keys.Fill] = []
    var entries: [StoreKey: CachedEntry] = [:]
    var parts: [StoreKey: SharedLoad.Part] = [:]
    for (key, entry) in zip(keys, found) where entries[key] == nil && parts[key] == nil {
      entries[key] = entry
      guard entry == nil else { continue }
      let ownPart = SharedLoad.Part(load: own, index: ownKeys.count)
      switch cache.beginReading(key, isReload: isReload, makeLoad: { ownPart }) {
      case .found(let entry):
        entries[key] = entry
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
    // No reader can join a load of busy keys only, and no reader arrives once closing has begun.
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
      // All readers concerned first share another load. If that fails as well, the keys are read without any others.
      return try await load(keys, keys.map { entries[$0] }, isReload: isReload, isRetry: true)
    }
    isOneMoment = isOneMoment && !isAnyUnread && entries.allSatisfy { key, entry in cache.isStillThere(entry, key) }
    // A single value is always a snapshot.
    if isOneMoment || (parts.count + entries.count == 1 && !isAnyUnread) {
      return keys.map { key in (entries[key].map(\.value) ?? boxes[key] ?? nil).map(value) }
    }
    cache.countPassedOver(entries.count)
    return try await readBase(keys).map { $0.map(value) }
  }
}

/// The source of the values that a ``CachedStore`` reads.
///
/// ```swift
/// let current = try await users.value(forKey: "user:1", policy: .reload)  // from the base, past the cache
/// ```
public enum LoadPolicy: Sendable, Hashable, CaseIterable {
  /// Uses the cached entry, or else loads the value from the base and caches it. This is the default.
  case cacheElseLoad

  /// Uses the cached entry and never reads the base.
  ///
  /// If there is no cached entry, the result is `nil`, as for a missing key.
  case cacheOnly

  /// Loads the value from the base, whether or not it is cached, and caches it.
  ///
  /// The value was read after the call began, and no later reader gets an older one. Use it to see changes that were
  /// made without the cache to a base that is not observable.
  case reload
}
