import Larder

@testable import LarderCache

/// The rule of `BusyKeys` written down a second time, with guards that can be left out, to see that each is needed.
struct VariantRule: CachingRule {
  enum Guard: Hashable, CaseIterable {
    /// A reader of a busy key neither leads nor joins, and keeps nothing.
    case busyReadersGoToTheBase
    /// A fill is kept only if no write began since.
    case fillsEndWithWrites
    /// Nobody joins a load from before a write.
    case loadsEndWithWrites
    /// A writer's value is kept only if no other write ran when it began.
    case writersAreAlone
    /// A writer's value is kept only if no other write began since.
    case writersEndWithWrites
    /// The removal of a range counts as a write of its keys.
    case rangesAreWrites
    /// What is invalidated ends fills and loads.
    case invalidationEndsFills
  }

  var omitted: Set<Guard> = []

  private struct Load: Hashable {
    let number: Int
    let key: StoreKey
    let epoch: UInt64
  }

  private var epochs: [StoreKey: UInt64] = [:]
  private var loads: [Load] = []
  private var keyWrites: [Keys.KeyWrite] = []
  private var rangeWrites: [Keys.RangeWrite] = []
  private var fillCount = 0
  private var lastEpoch: UInt64 = 0

  init() {}

  var isIdle: Bool { fillCount == 0 && keyWrites.isEmpty && rangeWrites.isEmpty && loads.isEmpty }

  private func holds(_ condition: Guard) -> Bool { !omitted.contains(condition) }

  private func isBusy(_ key: StoreKey) -> Bool {
    keyWrites.contains { $0.key == key } || rangeWrites.contains { $0.range.contains(key) }
  }

  private mutating func begin(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading {
    let load = Load(number: makeLoad(), key: key, epoch: epochs[key, default: 0])
    loads.append(load)
    fillCount += 1
    return .leading(Keys.Fill(key: key, epoch: load.epoch, isLoad: true), load.number)
  }

  mutating func beginReading(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading {
    if holds(.busyReadersGoToTheBase) && isBusy(key) { return .direct }
    let current = loads.last { load in
      load.key == key && (!holds(.loadsEndWithWrites) || load.epoch == epochs[key, default: 0])
    }
    guard let current else { return begin(key, makeLoad: makeLoad) }
    fillCount += 1
    return .joining(Keys.Fill(key: key, epoch: epochs[key, default: 0], isLoad: false), current.number)
  }

  mutating func beginReloading(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading {
    if holds(.busyReadersGoToTheBase) && isBusy(key) { return .direct }
    return begin(key, makeLoad: makeLoad)
  }

  mutating func beginRefreshing(_ key: StoreKey, makeLoad: () -> Int) -> (fill: Keys.Fill, load: Int)? {
    switch beginReading(key, makeLoad: makeLoad) {
    case .leading(let fill, let load): return (fill, load)
    case .joining: fillCount -= 1
    case .direct: break
    }
    return nil
  }

  mutating func end(_ fill: Keys.Fill) -> Bool {
    fillCount -= 1
    if fill.isLoad, let index = loads.firstIndex(where: { $0.key == fill.key && $0.epoch == fill.epoch }) {
      loads.remove(at: index)
    }
    return !holds(.fillsEndWithWrites) || fill.epoch == epochs[fill.key, default: 0]
  }

  mutating func beginWrite(of key: StoreKey, besides own: [Keys.RangeWrite]) -> Keys.KeyWrite {
    let wasAlone =
      !keyWrites.contains { $0.key == key }
      && !rangeWrites.contains { $0.range.contains(key) && !own.contains($0) }
    next(for: key)
    let write = Keys.KeyWrite(key: key, epoch: lastEpoch, wasAlone: wasAlone)
    keyWrites.append(write)
    return write
  }

  mutating func beginWrite(in range: KeyRange) -> Keys.RangeWrite {
    lastEpoch += 1
    let write = Keys.RangeWrite(range: range, epoch: lastEpoch)
    if holds(.rangesAreWrites) {
      for key in ModelledCache<VariantRule>.keys where range.contains(key) { epochs[key] = lastEpoch }
      rangeWrites.append(write)
    }
    return write
  }

  mutating func end(_ write: Keys.KeyWrite) -> Bool {
    keyWrites.removeAll { $0 == write }
    return (!holds(.writersAreAlone) || write.wasAlone)
      && (!holds(.writersEndWithWrites) || write.epoch == epochs[write.key, default: 0])
  }

  mutating func end(_ write: Keys.RangeWrite) {
    rangeWrites.removeAll { $0 == write }
  }

  mutating func invalidate(_ key: StoreKey) {
    if holds(.invalidationEndsFills) { next(for: key) }
  }

  private mutating func next(for key: StoreKey) {
    lastEpoch += 1
    epochs[key] = lastEpoch
  }
}
