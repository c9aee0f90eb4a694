import Larder
import LarderExpiry
import LarderTesting

/// A store whose entries expire, in memory, by a clock that is moved by hand; and what it stands on.
struct TestBench {
  let clock: ManualClock
  let memory: MemoryStore<Expiring<String>>
  let watched: WatchedStore<MemoryStore<Expiring<String>>>
  let store: ExpiringStore<WatchedStore<MemoryStore<Expiring<String>>>, String>

  init(_ expiration: Expiration = .never, purgesOnWrite: Bool = false) {
    let clock = ManualClock()
    self.clock = clock
    memory = MemoryStore()
    watched = WatchedStore(memory)
    store = watched.expiring(expiration, purgesOnWrite: purgesOnWrite) { clock.date }
  }

  /// The keys that take space, expired or not.
  var storedKeys: [StoreKey] {
    get throws { try memory.keys(in: .all, limit: .max, order: .ascending) }
  }
}
