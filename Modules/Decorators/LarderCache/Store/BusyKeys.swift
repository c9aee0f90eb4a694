import Larder

/// What goes on with the keys of one shard of a ``CachedStore``, and what may therefore be cached and shared.
///
/// The rule, which a model check of all schedules of short histories finds linearizable:
///
/// - While any write that touches a key runs (of the key, of a batch with it, of a range around it), the key is
///   busy: it has no cached value and no shared load, and reads go to the base.
/// - A fill is kept only if the key was never busy from before its base read to its insert.
/// - A writer's value is kept only if no other write touched the key from the writer's start to its insert.
/// - A reader joins only a load that was begun after the last write ended.
/// - When a reload ends, every fill, load and write of the key that has begun is worthless: it may be older. What the
///   reload found is kept by the rule for fills, or else the cached value is removed.
///
/// What is told here and what is done in the cache about it are one step, under one lock: a value is inserted in the
/// critical section in which ``end(_:)-(Fill)`` or ``end(_:)-(KeyWrite)`` allows it. Only the removal of the cached
/// value at the beginning of a write may follow outside: no value can come in any more, and the base is called after
/// it.
struct BusyKeys<Load> {
  /// A base read whose result may come into the cache, or that a reader has joined.
  struct Fill: Hashable, Sendable {
    let key: StoreKey
    /// The epoch of the key when the read began.
    let epoch: UInt64
    /// Whether others may join it.
    let isLoad: Bool
  }

  /// How a read of the base is to be made.
  enum Reading {
    /// By the reader for itself: nobody shares the result, and it is not kept.
    case direct
    /// It is being made already; ``end(_:)-(Fill)`` tells whether its result is still what the base has.
    case joining(Fill, Load)
    /// By the reader for itself and for whoever joins, until ``end(_:)-(Fill)``.
    case leading(Fill, Load)
  }

  /// A write that touches a key, until ``end(_:)-(KeyWrite)``.
  struct KeyWrite: Hashable, Sendable {
    let key: StoreKey
    /// The epoch that began with this write.
    let epoch: UInt64
    /// Whether no other write touched the key when this one began.
    let wasAlone: Bool
  }

  /// A write that touches a range, until ``end(_:)-(RangeWrite)``.
  struct RangeWrite: Hashable, Sendable {
    let range: KeyRange
    /// The epoch that began with this write.
    let epoch: UInt64
  }

  /// What goes on with a key; there is none where nothing does.
  fileprivate struct State {
    /// How many writes of the key run, those of ranges not counted.
    var writes = 0
    /// How many fills have not ended.
    var fills = 0
    /// Tells whether anything happened to the key meanwhile.
    ///
    /// It changes with every write that begins, and with whatever else makes fills that have begun worthless.
    var epoch: UInt64
    /// The load that a reader may join: one of the current epoch.
    var load: Load?
  }

  private var states: [StoreKey: State] = [:]
  private var rangeWrites: [RangeWrite] = []
  private var lastEpoch: UInt64 = 0

  /// Whether nothing goes on.
  var isIdle: Bool { states.isEmpty && rangeWrites.isEmpty }

  /// Whether a write that touches a key runs.
  ///
  /// - Parameter key: The key.
  func isBusy(_ key: StoreKey) -> Bool {
    (states[key]?.writes ?? 0) > 0 || rangeWrites.contains { $0.range.contains(key) }
  }

  // MARK: Reading

  /// Begins a base read for a reader who found no value.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - makeLoad: Makes the load for others to join, where this reader leads.
  mutating func beginReading(_ key: StoreKey, makeLoad: () -> Load) -> Reading {
    guard !isBusy(key) else { return .direct }
    guard let load = states[key]?.load else { return beginLoad(of: key, makeLoad) }
    return .joining(beginFill(of: key, load: nil), load)
  }

  /// Begins a base read for a reader who wants what the base has now, which ends with ``invalidate(_:)``.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - makeLoad: Makes the load for others to join.
  mutating func beginReloading(_ key: StoreKey, makeLoad: () -> Load) -> Reading {
    isBusy(key) ? .direct : beginLoad(of: key, makeLoad)
  }

  /// Begins a base read behind a reader who has an old value.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - makeLoad: Makes the load for others to join.
  /// - Returns: The read, or `nil` where the key is busy or being read already.
  mutating func beginRefreshing(_ key: StoreKey, makeLoad: () -> Load) -> (fill: Fill, load: Load)? {
    guard states[key]?.load == nil, case .leading(let fill, let load) = beginReading(key, makeLoad: makeLoad) else {
      return nil
    }
    return (fill, load)
  }

  /// Ends a base read.
  ///
  /// - Parameter fill: The read.
  /// - Returns: Whether its result may be inserted, in the same critical section.
  mutating func end(_ fill: Fill) -> Bool {
    guard var state = states[fill.key] else { return false }
    state.fills -= 1
    let isCurrent = state.epoch == fill.epoch
    if fill.isLoad && isCurrent { state.load = nil }
    put(state, for: fill.key)
    // A write that began since, of the key or a range, changed the epoch; none ran when the read began.
    return isCurrent
  }

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

  /// Makes a key busy.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - own: The range writes of the same batch, which are not others; none unless given.
  mutating func beginWrite(of key: StoreKey, besides own: [RangeWrite] = []) -> KeyWrite {
    let meetsRange = rangeWrites.contains { $0.range.contains(key) && !own.contains($0) }
    lastEpoch += 1
    var state = states[key] ?? State(epoch: lastEpoch)
    let wasAlone = state.writes == 0 && !meetsRange
    state.writes += 1
    state.epoch = lastEpoch
    state.load = nil
    states[key] = state
    return KeyWrite(key: key, epoch: lastEpoch, wasAlone: wasAlone)
  }

  /// Makes the keys of a range busy.
  ///
  /// - Parameter range: The range.
  mutating func beginWrite(in range: KeyRange) -> RangeWrite {
    lastEpoch += 1
    for key in states.keys where range.contains(key) {
      states[key]?.epoch = lastEpoch
      states[key]?.load = nil
    }
    let write = RangeWrite(range: range, epoch: lastEpoch)
    rangeWrites.append(write)
    return write
  }

  /// Ends a write of a key.
  ///
  /// - Parameter write: The write.
  /// - Returns: Whether what was written may be inserted, in the same critical section, if it was.
  mutating func end(_ write: KeyWrite) -> Bool {
    guard var state = states[write.key] else { return false }
    state.writes -= 1
    let isCurrent = state.epoch == write.epoch
    put(state, for: write.key)
    return write.wasAlone && isCurrent
  }

  /// Ends a write of a range.
  ///
  /// - Parameter write: The write.
  mutating func end(_ write: RangeWrite) {
    rangeWrites.removeAll { $0 == write }
  }

  // MARK: Forgetting

  /// Makes every base read and write of a key that has begun worthless for the cache, and lets nobody join one of
  /// those reads.
  ///
  /// - Parameter key: The key.
  mutating func invalidate(_ key: StoreKey) {
    lastEpoch += 1
    states[key]?.epoch = lastEpoch
    states[key]?.load = nil
  }

  /// Makes every base read and write that has begun worthless for the cache, and lets nobody join a read any more.
  mutating func invalidateAll() {
    lastEpoch += 1
    for key in states.keys {
      states[key]?.epoch = lastEpoch
      states[key]?.load = nil
    }
  }

  private mutating func put(_ state: State, for key: StoreKey) {
    states[key] = state.writes > 0 || state.fills > 0 ? state : nil
  }
}

extension BusyKeys: Sendable where Load: Sendable {}
extension BusyKeys.State: Sendable where Load: Sendable {}
extension BusyKeys.Reading: Sendable where Load: Sendable {}

// Equal states have the same future, by which a model check recognizes those that it has seen.
extension BusyKeys: Equatable where Load: Equatable {}
extension BusyKeys: Hashable where Load: Hashable {}
extension BusyKeys.State: Equatable where Load: Equatable {}
extension BusyKeys.State: Hashable where Load: Hashable {}
