import Larder

/// The running reads and writes of the keys of a ``CachedStore``, which decide what may be cached and
/// shared.
///
/// The rule, which a model check of all schedules of short histories finds linearizable:
///
/// - While any write that touches a key is running (of the key, of a batch with it, or of a range around it), the key
///   is busy. It has no cached value and no shared load, and reads go to the base.
/// - A fill is cached only if the key was never busy from before its read of the base until its insertion.
/// - A written value is cached only if no other write touched the key from the start of the write until the insertion.
/// - If the base reports its changes, a report is a write beside the cache, except for the first one that names a key
///   during a write that changes that key. It is the write's own, or the write's own follows before the write returns.
///   Writes of other hosts may be reported late, and more than once. A store reports them as ranges, which are never taken
///   for a write's own, because a base that skips a write of an equal value does not report it.
/// - A reader joins only a load that began after the last write ended.
/// - When a reload ends, every fill, load and write of the key that has begun is void, because it may be older. The
///   result of the reload is cached by the rule for fills, or else the cached value is removed.
///
/// A state change here and the corresponding change of the cache are one step, under one lock. A value is inserted in
/// the critical section in which ``end(_:)-(Fill)`` or ``end(_:)-(KeyWrite)`` allows it. Only the removal of the cached
/// value at the beginning of a write may follow outside, because no value can be inserted any more, and the base is
/// called after it.
struct BusyKeys<Load> {
  /// A read of the base whose result may be cached, or that a reader has joined.
  struct Fill: Hashable, Sendable {
    let key: StoreKey
    /// The epoch of the key when the read began.
    let epoch: UInt64
    /// A Boolean value that indicates whether other readers may join it.
    let isLoad: Bool
  }

  /// The way to perform a read of the base.
  enum Reading {
    /// The reader reads for itself. The result is neither shared nor cached.
    case direct
    /// The read is already running. ``end(_:)-(Fill)`` returns whether its result is still current.
    case joining(Fill, Load)
    /// The reader reads for itself and all readers that join, until ``end(_:)-(Fill)``.
    case leading(Fill, Load)
  }

  /// A write that touches a key, until ``end(_:)-(KeyWrite)``.
  struct KeyWrite: Hashable, Sendable {
    let key: StoreKey
    /// The epoch that began with this write.
    let epoch: UInt64
    /// A Boolean value that indicates whether no other write touched the key when this one began.
    let wasAlone: Bool
  }

  /// A write that touches a range, until ``end(_:)-(RangeWrite)``.
  struct RangeWrite: Hashable, Sendable {
    let range: KeyRange
    /// The epoch that began with this write.
    let epoch: UInt64
  }

  /// The state of a key, which exists only while a read or a write of it is running.
  fileprivate struct State {
    /// The number of running writes of the key, without those of ranges.
    var writes = 0
    /// The number of fills that have not ended.
    var fills = 0
    /// A number that shows whether the key has changed in the meantime.
    ///
    /// It changes with every write that begins, and with everything else that voids running fills.
    var epoch: UInt64
    /// The load that a reader may join, which belongs to the current epoch.
    var load: Load?
    /// A Boolean value that indicates whether the base has reported the key since the last write of it began.
    var isReported = false
  }

  private var states: [StoreKey: State] = [:]
  private var rangeWrites: [RangeWrite] = []
  private var lastEpoch: UInt64 = 0

  /// A Boolean value that indicates whether no read and no write is running.
  var isIdle: Bool { states.isEmpty && rangeWrites.isEmpty }

  /// Returns whether a write that touches a key is running.
  ///
  /// - Parameter key: The key.
  func isBusy(_ key: StoreKey) -> Bool {
    (states[key]?.writes ?? 0) > 0 || rangeWrites.contains { $0.range.contains(key) }
  }

  // MARK: Reading

  /// Begins a read of the base for a reader that found no value.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - makeLoad: A closure that creates the load for others to join, if this reader leads.
  mutating func beginReading(_ key: StoreKey, makeLoad: () -> Load) -> Reading {
    guard !isBusy(key) else { return .direct }
    guard let load = states[key]?.load else { return beginLoad(of: key, makeLoad) }
    return .joining(beginFill(of: key, load: nil), load)
  }

  /// Begins a read of the base for a reader that wants its current value, which ends with ``invalidate(_:)``.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - makeLoad: A closure that creates the load for others to join.
  mutating func beginReloading(_ key: StoreKey, makeLoad: () -> Load) -> Reading {
    isBusy(key) ? .direct : beginLoad(of: key, makeLoad)
  }

  /// Begins a background read of the base for a reader that has an old value.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - makeLoad: A closure that creates the load for others to join.
  /// - Returns: The read, or `nil` if the key is busy or already being read.
  mutating func beginRefreshing(_ key: StoreKey, makeLoad: () -> Load) -> (fill: Fill, load: Load)? {
    guard states[key]?.load == nil, case .leading(let fill, let load) = beginReading(key, makeLoad: makeLoad) else {
      return nil
    }
    return (fill, load)
  }

  /// Ends a read of the base.
  ///
  /// - Parameter fill: The read.
  /// - Returns: A Boolean value that indicates whether its result may be inserted, in the same critical section.
  mutating func end(_ fill: Fill) -> Bool {
    guard var state = states[fill.key] else { return false }
    state.fills -= 1
    let isCurrent = state.epoch == fill.epoch
    if fill.isLoad && isCurrent { state.load = nil }
    put(state, for: fill.key)
    // A write of the key or a range that began since has changed the epoch. None was running when the read began.
    return isCurrent
  }

  /// Returns whether the result of a read of the base may be inserted.
  func isCurrent(_ fill: Fill) -> Bool { states[fill.key]?.epoch == fill.epoch }

  private mutating func beginLoad(of key: StoreKey, _ makeLoad: () -> Load) -> Reading {
    let load = makeLoad()
    return .leading(beginFill(of: key, load: load), load)
  }

  private mutating func beginFill(of key: StoreKey, load: Load?) -> Fill {
    var state = states[key] ?? State(epoch: lastEpoch)
    state.fills += 1
    if let load { state.load = load }
    states[key] = state
    return Fill(key: key, epoch: state.epoch, isLoad: load != nil)
  }

  // MARK: Writing

  /// Marks a key as busy.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - own: The range writes of the same batch. They do not count as other writes. Defaults to an empty list.
  mutating func beginWrite(of key: StoreKey, besides own: [RangeWrite] = []) -> KeyWrite {
    let meetsRange = rangeWrites.contains { $0.range.contains(key) && !own.contains($0) }
    lastEpoch += 1
    var state = states[key] ?? State(epoch: lastEpoch)
    let wasAlone = state.writes == 0 && !meetsRange
    state.writes += 1
    state.epoch = lastEpoch
    state.load = nil
    state.isReported = false
    states[key] = state
    return KeyWrite(key: key, epoch: lastEpoch, wasAlone: wasAlone)
  }

  /// Marks the keys of a range as busy.
  ///
  /// - Parameter range: The range.
  mutating func beginWrite(in range: KeyRange) -> RangeWrite {
    invalidate(in: range)
    let write = RangeWrite(range: range, epoch: lastEpoch)
    rangeWrites.append(write)
    return write
  }

  /// Ends a write of a key.
  ///
  /// - Parameters:
  ///   - write: The write.
  ///   - isReported: A Boolean value that indicates whether the base reports the write itself, which it does not if the
  ///     write has only read the key. Defaults to `true`.
  /// - Returns: A Boolean value that indicates whether the written value may be inserted, in the same critical section,
  ///   if the write succeeded.
  mutating func end(_ write: KeyWrite, isReported: Bool = true) -> Bool {
    guard var state = states[write.key] else { return false }
    state.writes -= 1
    let isCurrent = state.epoch == write.epoch && (isReported || !state.isReported)
    put(state, for: write.key)
    return write.wasAlone && isCurrent
  }

  /// Ends the reports of a write that the base has performed: every later report of the key is that of another write.
  ///
  /// Call it if the value is inserted some time before ``end(_:isReported:)``.
  ///
  /// - Returns: A Boolean value that indicates whether the value may be inserted; see ``end(_:isReported:)``.
  mutating func endReports(of write: KeyWrite, isReported: Bool) -> Bool {
    guard var state = states[write.key], state.epoch == write.epoch else { return false }
    defer {
      state.isReported = true
      states[write.key] = state
    }
    return write.wasAlone && (isReported || !state.isReported)
  }

  /// Returns whether the value of a write may still be inserted if it succeeded; see ``end(_:isReported:)``.
  func isCurrent(_ write: KeyWrite) -> Bool {
    write.wasAlone && states[write.key]?.epoch == write.epoch
  }

  /// Ends a write of a range.
  ///
  /// - Parameter write: The write.
  mutating func end(_ write: RangeWrite) {
    rangeWrites.removeAll { $0 == write }
  }

  // MARK: Invalidation

  /// Voids every running read and write of a key for the cache, and ends the joining of these reads.
  ///
  /// - Parameter key: The key.
  mutating func invalidate(_ key: StoreKey) {
    lastEpoch += 1
    states[key]?.epoch = lastEpoch
    states[key]?.load = nil
  }

  /// Voids every running read and write in a range for the cache, and ends the joining of these reads.
  ///
  /// - Parameter range: The range.
  mutating func invalidate(in range: KeyRange) {
    lastEpoch += 1
    for key in states.keys where range.contains(key) {
      states[key]?.epoch = lastEpoch
      states[key]?.load = nil
    }
  }

  /// Voids every running read and write of a key that the base has reported, unless the report may be a write's own.
  ///
  /// Call it once each time that the base names the key, because one report may cover several writes. A report that
  /// names a range may cover any number of writes. Call ``invalidate(in:)`` for it.
  ///
  /// - Parameter key: The key.
  /// - Returns: A Boolean value that indicates whether the report is not that of a write's own.
  @discardableResult
  mutating func report(_ key: StoreKey) -> Bool {
    if let state = states[key], state.writes > 0, !state.isReported {
      states[key]?.isReported = true
      return false
    }
    invalidate(key)
    return true
  }

  private mutating func put(_ state: State, for key: StoreKey) {
    states[key] = state.writes > 0 || state.fills > 0 ? state : nil
  }
}

extension BusyKeys: Sendable where Load: Sendable {}
extension BusyKeys.State: Sendable where Load: Sendable {}
extension BusyKeys.Reading: Sendable where Load: Sendable {}

// Equal states have the same future. By this, a model check recognizes states that it has seen.
extension BusyKeys: Equatable where Load: Equatable {}
extension BusyKeys: Hashable where Load: Hashable {}
extension BusyKeys.State: Equatable where Load: Equatable {}
extension BusyKeys.State: Hashable where Load: Hashable {}
