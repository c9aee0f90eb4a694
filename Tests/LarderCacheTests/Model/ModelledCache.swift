import Larder

@testable import LarderCache

/// A model of `CachedStore` without threads: a cache over a base with two keys, each in a state of its own, and some
/// callers.
///
/// One caller at a time performs one step.
struct ModelledCache<Rule: CachingRule>: Hashable {
  static var keys: [StoreKey] { ["a", "b"] }

  /// A part of `CachedStore` that the model can leave out.
  enum Shortcut: Hashable, CaseIterable {
    /// A read of several keys does not check the entries that it found again.
    case doesNotLookAgain
    /// A write removes the entry before it makes the key busy.
    case removesCopiesEarly
    /// A write does not remove the entry.
    case leavesCopies
    /// A failed write keeps its value.
    case keepsFailedValues
    /// A read of several keys does not check whether a joined load still matches the base.
    case trustsJoinedLoads
    /// A reload whose value is not kept leaves the entry.
    case reloadsLeaveCopies
    /// Reads and writes that start before a reload ends may leave entries.
    case reloadsLeaveFills
    /// A report of the base does not remove the entry.
    case reportsLeaveCopies
    /// A report of the base does not remove the entry if the key is busy.
    case reportsLeaveCopiesOfBusyKeys
    /// A key that is named twice in one report counts once.
    case reportsCountOnce
    /// A read uses cached entries although the base has not reported all commits for a second.
    case readsDespiteLag
    /// A read of a base that lags joins a load that has begun before.
    case joinsDespiteLag

    /// A Boolean value that indicates whether the part exists only over a base that reports its changes.
    var isOfReports: Bool {
      switch self {
      case .reportsLeaveCopies, .reportsLeaveCopiesOfBusyKeys, .reportsCountOnce, .readsDespiteLag, .joinsDespiteLag:
        true
      default: false
      }
    }
  }

  struct Copy: Hashable {
    let value: UInt8
    let stamp: Int
  }

  enum Load: Hashable {
    case running
    case done(UInt8)
    case failed
  }

  enum Step: Hashable {
    case look(Int), beginReading, load, endLoad, readDirectly, endReload, wait
    case beginPart(Int), readParts, endPart(Int), waitForPart(Int), lookAgain(Int), readAll
    case beginWrite(Int), removeCopy(Int), writeBase, endWrite(Int)
    case writeElsewhere, beginForgetting, forget, evict
    case writeBeside, lag, report(Int), forgetReported(Int)
    case done
  }

  struct Caller: Hashable {
    var next: Step
    var hasBegun = false
    /// A Boolean value that indicates whether the order of the results does not matter, because a caller wrote past the
    /// cache during the operation.
    var isExcused = false
    var found: [Copy?] = [nil, nil]
    var values: [UInt8] = [0, 0]
    var load = 0
    var hasFailed = false
    var hasChanged = false
    /// A Boolean value that indicates whether the caller reads the base because that lags.
    var mustReload = false
    var fills: [Rule.Keys.Fill?] = [nil, nil]
    /// The loads of other callers that a read of several keys has joined.
    var joined: [Int?] = [nil, nil]
    /// The caller's own loads, which others may join.
    var led: [Int?] = [nil, nil]
    /// The place in the history of the oldest value that this caller may read.
    var oldest = 0
    /// The place in the history of the value that this caller wrote.
    var place = 0
    var keyWrites: [Rule.Keys.KeyWrite?] = [nil, nil]
    var rangeWrites: [Rule.Keys.RangeWrite?] = [nil, nil]
  }

  let operations: [ModelledOperation]
  /// A Boolean value that indicates whether the base reports its changes.
  let isReported: Bool
  let shortcuts: Set<Shortcut>
  var base: [UInt8] = [1, 1]
  var copies: [Copy?] = [nil, nil]
  var shards: [Rule]
  var loads: [Load] = []
  /// The number of writes of other hosts that the base has not reported for more than a second.
  var laggingCount = 0
  private var lastStamp = 0
  var callers: [Caller]
  /// The values of `a` in the base, if the age of results is to be checked.
  private var history: [UInt8] = [1]
  /// The place in the history of the oldest value that a caller may read from now on.
  private var oldest = 0
  private var hasServedOlder = false
  private(set) var orders: ModelledOrders

  /// - Parameters:
  ///   - operations: The operation of each caller.
  ///   - isWarm: A Boolean value that indicates whether the cache holds both keys initially.
  ///   - isReported: A Boolean value that indicates whether the base reports its changes.
  ///   - rule: The initial state of the shards.
  ///   - shortcuts: The parts that the callers leave out.
  init(
    _ operations: [ModelledOperation], isWarm: Bool, isReported: Bool, rule: Rule, shortcuts: Set<Shortcut> = []
  ) {
    self.operations = operations
    self.isReported = isReported
    self.shortcuts = shortcuts
    shards = [rule, rule]
    orders = ModelledOrders([1, 1])
    callers = operations.map { Caller(next: Self.firstStep(of: $0, shortcuts)) }
    if isWarm { for key in 0...1 { insert(1, key) } }
  }

  private static func firstStep(of operation: ModelledOperation, _ shortcuts: Set<Shortcut>) -> Step {
    switch operation {
    case .read, .readAndLeave, .readInVain, .readBoth: .look(0)
    case .reload, .refresh: .beginReading
    case .invalidate: .beginForgetting
    case .writeElsewhere, .writeElsewhereAndReload, .writePast: .writeElsewhere
    case .evict: .evict
    case .writeBeside, .writeBothBeside, .removeRangeBeside, .writeAbroad, .writeAbroadUnheard: .writeBeside
    default: shortcuts.contains(.removesCopiesEarly) ? .removeCopy(0) : .beginWrite(0)
    }
  }

  // MARK: Steps

  /// The callers that can perform a step.
  var ready: [Int] {
    callers.indices.filter { index in
      switch callers[index].next {
      case .done: false
      case .wait: loads[callers[index].load] != .running
      case .waitForPart(let key): callers[index].joined[key].map { loads[$0] != .running } ?? true
      default: true
      }
    }
  }

  /// A description of a fault after the last step, when no caller can continue, or `nil` if there isn't one.
  var fault: String? {
    if hasServedOlder { return "a reader got an older value than a reload, or a reported write, before it" }
    if orders.isEmpty { return "no order explains the results" }
    if let index = callers.firstIndex(where: { $0.next != .done }) { return "caller \(index) waits forever" }
    for (key, copy) in copies.enumerated() where copy.map({ $0.value != base[key] }) ?? false {
      if key == 0, operations.contains(.writePast) { continue }
      return "the cached entry of \(Self.keys[key]) differs from the base"
    }
    return shards.allSatisfy(\.isIdle) ? nil : "a shard is not idle at the end"
  }

  /// Describes a caller and its next step.
  func text(of caller: Int) -> String { "\(caller): \(operations[caller]), \(callers[caller].next)" }

  /// Performs the next step of a caller.
  mutating func go(_ index: Int) {
    if !callers[index].hasBegun {
      callers[index].hasBegun = true
      callers[index].isExcused = zip(operations, callers).contains { mayDisorder(index, $0, $1) }
      callers[index].oldest = oldest
      if isRecorded(index) { orders.begin(index) }
    }
    let step = callers[index].next
    switch step {
    case .look, .beginReading, .load, .endLoad, .readDirectly, .endReload, .wait: read(index, step)
    case .beginPart, .readParts, .endPart, .waitForPart, .lookAgain, .readAll: readBoth(index, step)
    case .beginWrite, .removeCopy, .writeBase, .endWrite: write(index, step)
    case .writeElsewhere, .beginForgetting, .forget, .evict: forget(index, step)
    case .writeBeside, .lag, .report, .forgetReported: report(index, step)
    case .done: break
    }
  }

  /// Returns whether a write past the cache may put the results of a reader that begins into no order.
  ///
  /// Between a commit and its report, readers may get the old value from the cache, and the new one from the base.
  private func mayDisorder(_ reader: Int, _ operation: ModelledOperation, _ caller: Caller) -> Bool {
    if operation.isPastTheCache { return caller.next != .done || operation == .writePast }
    // A read of both keys may take one of them from the cache and then the other from the base.
    return operation.isBeside && caller.next != .done && (caller.hasBegun || operations[reader] == .readBoth)
  }

  private func isRecorded(_ index: Int) -> Bool {
    switch operations[index] {
    case .readAndLeave, .refresh, .writeInVain, .invalidate, .evict: false
    case .read, .readInVain, .reload, .readBoth: !callers[index].isExcused
    default: true
    }
  }

  private var checksAges: Bool {
    isReported || operations.contains { $0 == .reload || $0 == .writeElsewhereAndReload }
  }

  mutating func setBase(_ values: [UInt8], _ index: Int) {
    if checksAges && values[0] != base[0] { history.append(values[0]) }
    callers[index].place = history.count - 1
    base = values
  }

  private func isReload(_ index: Int) -> Bool {
    operations[index] == .reload || operations[index] == .writeElsewhereAndReload || callers[index].mustReload
  }

  /// Notes that the base has not reported a write for a second.
  mutating func lag(since writer: Int) {
    laggingCount += 1
    oldest = max(oldest, callers[writer].place)
  }

  /// Compares the value of `a` that a caller has read with the values that reloads have returned, and with the reported
  /// writes that had ended when the caller began.
  private mutating func checkAge(of value: UInt8, _ index: Int) {
    guard checksAges, let place = history.lastIndex(of: value) else { return }
    if place < callers[index].oldest { hasServedOlder = true }
    if isReload(index) { oldest = max(oldest, place) }
  }

  mutating func finish(_ index: Int, _ a: UInt8 = 0, _ b: UInt8 = 0) {
    callers[index].next = .done
    switch operations[index] {
    case .read, .readInVain, .reload, .readBoth, .writeElsewhereAndReload: checkAge(of: a, index)
    default: if isReported { oldest = max(oldest, callers[index].place) }
    }
    guard isRecorded(index), operations[index] != .writeUnknowingly else { return }
    let hasResult = operations[index] != .writeElsewhereAndReload
    orders.end(index, returning: hasResult ? (a, b) : (0, 0), of: operations)
  }

  mutating func fail(_ index: Int) {
    callers[index].next = .done
    if isRecorded(index) { orders.drop(index) }
  }

  mutating func insert(_ value: UInt8, _ key: Int) {
    lastStamp += 1
    copies[key] = Copy(value: value, stamp: lastStamp)
  }

  // MARK: Reading one key

  private mutating func read(_ index: Int, _ step: Step) {
    switch step {
    case .look(let key):
      if key == 0, laggingCount > 0, !shortcuts.contains(.readsDespiteLag) {
        callers[index].mustReload = !shortcuts.contains(.joinsDespiteLag)
        callers[index].next = operations[index] == .readBoth ? .readAll : .beginReading
        return
      }
      callers[index].found[key] = copies[key]
      if operations[index] == .readBoth {
        callers[index].next = key == 0 ? .look(1) : .beginPart(0)
      } else if let copy = copies[key] {
        finish(index, copy.value)
      } else {
        callers[index].next = .beginReading
      }
    case .beginReading:
      beginReading(index)
    case .load:
      callers[index].values[0] = base[0]
      callers[index].hasFailed = operations[index] == .readInVain
      callers[index].next = .endLoad
    case .endLoad:
      let (value, hasFailed) = (callers[index].values[0], callers[index].hasFailed)
      let isCurrent = callers[index].fills[0].map { shards[0].end($0) } ?? false
      if isReload(index) { endReload(isCurrent) }
      if isCurrent, !hasFailed { insert(value, 0) }
      loads[callers[index].load] = hasFailed ? .failed : .done(value)
      if hasFailed { fail(index) } else { finish(index, value) }
    case .readDirectly:
      guard operations[index] != .readInVain else { return fail(index) }
      guard isReload(index) else { return finish(index, base[0]) }
      callers[index].values[0] = base[0]
      callers[index].next = .endReload
    case .endReload:
      endReload(false)
      finish(index, callers[index].values[0])
    case .wait:
      if case .done(let value) = loads[callers[index].load] { finish(index, value) } else { fail(index) }
    default:
      break
    }
  }

  private mutating func endReload(_ isCurrent: Bool) {
    if !shortcuts.contains(.reloadsLeaveFills) { shards[0].invalidate(Self.keys[0]) }
    if !isCurrent, !shortcuts.contains(.reloadsLeaveCopies) { copies[0] = nil }
  }

  private mutating func beginReading(_ index: Int) {
    let load = loads.count
    let key = Self.keys[0]
    let reading: Rule.Keys.Reading
    switch operations[index] {
    case .refresh:
      guard let (fill, load) = shards[0].beginRefreshing(key, makeLoad: { load }) else { return finish(index) }
      reading = .leading(fill, load)
    case _ where isReload(index):
      reading = shards[0].beginReloading(key) { load }
    default:
      // Another caller may have cached the entry since the first look.
      if laggingCount == 0 || shortcuts.contains(.readsDespiteLag), let copy = copies[0] {
        return finish(index, copy.value)
      }
      reading = shards[0].beginReading(key) { load }
    }
    switch reading {
    case .direct:
      callers[index].next = .readDirectly
    case .joining(let fill, let load):
      _ = shards[0].end(fill)
      callers[index].load = load
      callers[index].next = .wait
    case .leading(let fill, let load):
      loads.append(.running)
      callers[index].fills[0] = fill
      callers[index].load = load
      callers[index].next = .load
    }
  }

  // MARK: Writing

  private func touchesBoth(_ index: Int) -> Bool {
    switch operations[index] {
    case .writeBoth, .removeRange, .replaceRange: true
    default: false
    }
  }

  private mutating func write(_ index: Int, _ step: Step) {
    let isEarly = shortcuts.contains(.removesCopiesEarly)
    switch step {
    case .beginWrite(let key):
      beginWrite(index, key)
      let last: Step = isEarly ? .writeBase : .removeCopy(0)
      callers[index].next = key == 0 && touchesBoth(index) ? .beginWrite(1) : last
    case .removeCopy(let key):
      if !shortcuts.contains(.leavesCopies) { copies[key] = nil }
      let last: Step = isEarly ? .beginWrite(0) : .writeBase
      callers[index].next = key == 0 && touchesBoth(index) ? .removeCopy(1) : last
    case .writeBase:
      callers[index].values = base
      callers[index].hasFailed = operations[index] == .writeInVain || operations[index] == .writeUnknowingly
      if operations[index] != .writeInVain {
        let after = operations[index].values(a: base[0], b: base[1], writing: UInt8(2 + index))
        setBase([after.0, after.1], index)
      }
      callers[index].next = mentions(by: index).isEmpty ? .endWrite(0) : .report(0)
    case .endWrite(let key):
      endWrite(index, key)
      if key == 0 && touchesBoth(index) {
        callers[index].next = .endWrite(1)
      } else {
        let returnsOld = operations[index] == .update || operations[index] == .updateNothing
        finish(index, returnsOld ? callers[index].values[0] : 0)
      }
    default:
      break
    }
  }

  private mutating func beginWrite(_ index: Int, _ key: Int) {
    switch operations[index] {
    case .removeRange:
      callers[index].rangeWrites[key] = shards[key].beginWrite(in: .all)
    case .replaceRange:
      let rangeWrite = shards[key].beginWrite(in: .all)
      callers[index].rangeWrites[key] = rangeWrite
      if key == 0 {
        callers[index].keyWrites[0] = shards[0].beginWrite(of: Self.keys[0], besides: [rangeWrite])
      }
    default:
      callers[index].keyWrites[key] = shards[key].beginWrite(of: Self.keys[key], besides: [])
    }
  }

  private mutating func endWrite(_ index: Int, _ key: Int) {
    // A writer does not know of a write that shares its commit.
    let operation = operations[index] == .writeJoined ? .write : operations[index]
    let isReadOnly = operation == .updateNothing
    let read = callers[index].values
    let value = operation.values(a: isReadOnly ? read[0] : 0, b: 0, writing: UInt8(2 + index))
    let isKept = !callers[index].hasFailed || shortcuts.contains(.keepsFailedValues)
    if let write = callers[index].keyWrites[key], shards[key].end(write, isReported: !isReadOnly), isKept {
      insert(key == 0 ? value.0 : value.1, key)
    }
    if let write = callers[index].rangeWrites[key] { shards[key].end(write) }
  }

  // MARK: Invalidation

  private mutating func forget(_ index: Int, _ step: Step) {
    switch step {
    case .writeElsewhere:
      setBase([UInt8(2 + index), base[1]], index)
      switch operations[index] {
      case .writeElsewhere: callers[index].next = .beginForgetting
      case .writePast: finish(index)
      default: callers[index].next = .beginReading
      }
    case .beginForgetting:
      shards[0].invalidate(Self.keys[0])
      callers[index].next = .forget
    default:
      copies[0] = nil
      finish(index)
    }
  }
}

/// The decisions of a ``ModelledCache`` about the keys of a shard: `BusyKeys`, or a variant that lacks one of its
/// guards.
protocol CachingRule: Hashable {
  typealias Keys = BusyKeys<Int>

  init()
  var isIdle: Bool { get }
  func isBusy(_ key: StoreKey) -> Bool
  mutating func beginReading(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading
  mutating func beginReloading(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading
  mutating func beginRefreshing(_ key: StoreKey, makeLoad: () -> Int) -> (fill: Keys.Fill, load: Int)?
  mutating func end(_ fill: Keys.Fill) -> Bool
  mutating func beginWrite(of key: StoreKey, besides own: [Keys.RangeWrite]) -> Keys.KeyWrite
  mutating func beginWrite(in range: KeyRange) -> Keys.RangeWrite
  mutating func end(_ write: Keys.KeyWrite, isReported: Bool) -> Bool
  mutating func end(_ write: Keys.RangeWrite)
  mutating func invalidate(_ key: StoreKey)
  mutating func invalidate(in range: KeyRange)
  @discardableResult
  mutating func report(_ key: StoreKey) -> Bool
}

extension BusyKeys: CachingRule where Load == Int {}
