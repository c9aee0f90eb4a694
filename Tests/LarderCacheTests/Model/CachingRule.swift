import Larder

@testable import LarderCache

/// What a ``ModelledCache`` asks about the keys of a shard: `BusyKeys`, or a variant that lacks one of its guards.
protocol CachingRule: Hashable {
  typealias Keys = BusyKeys<Int>

  init()
  var isIdle: Bool { get }
  mutating func beginReading(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading
  mutating func beginReloading(_ key: StoreKey, makeLoad: () -> Int) -> Keys.Reading
  mutating func beginRefreshing(_ key: StoreKey, makeLoad: () -> Int) -> (fill: Keys.Fill, load: Int)?
  mutating func end(_ fill: Keys.Fill) -> Bool
  mutating func beginWrite(of key: StoreKey, besides own: [Keys.RangeWrite]) -> Keys.KeyWrite
  mutating func beginWrite(in range: KeyRange) -> Keys.RangeWrite
  mutating func end(_ write: Keys.KeyWrite) -> Bool
  mutating func end(_ write: Keys.RangeWrite)
  mutating func invalidate(_ key: StoreKey)
}

extension BusyKeys: CachingRule where Load == Int {}
