import Larder
import LarderExpiry

/// The test of a store as a cache of images: it is filled, read, cleared and filled again, and its images expire.
///
/// It is the classical comparison of a cache in files with one in a database, with every step checked.
struct CacheTest {
  /// How long an image lives that nobody asks for.
  static let lifetime = Duration.seconds(3600)

  /// What is stored, each image under a key of its own.
  let images: [Image]

  /// The time that the store goes by; it is moved on to see images expire.
  let time = ManualTime()

  /// Makes the test with a store.
  ///
  /// - Parameters:
  ///   - base: The store, empty. It is closed at the end.
  ///   - name: What the store is called in the result.
  /// - Returns: How long each step took, and what was counted.
  /// - Throws: ``CacheTestFailure`` where the store does not have what it was given; what the store throws.
  func run(on base: some DataStore<Expiring<[UInt8]>>, named name: String) async throws -> CacheTestResult {
    let time = time
    let store = base.expiring(.sliding(Self.lifetime), now: { time.date })
    let keys = images.indices.map { StoreKey(components: "image", $0) }
    var result = CacheTestResult(store: name)

    try await result.measure(.store) {
      for (key, image) in zip(keys, images) {
        try await store.setValue(image.bytes, forKey: key)
      }
    }
    try await result.measure(.synchronize) {
      try await store.synchronize()
    }
    let loaded = try await result.measure(.load) {
      var loaded: [[UInt8]?] = []
      for key in keys {
        try await loaded.append(store.value(forKey: key))
      }
      return loaded
    }
    guard loaded == images.map(\.bytes) else { throw CacheTestFailure.loadedSomethingElse }

    try await result.measure(.clearAndSynchronize) {
      try await store.removeAll()
      try await store.synchronize()
    }
    guard try await store.count() == 0 else { throw CacheTestFailure.notCleared }

    try await result.measure(.storeAndSynchronizeEach) {
      for (key, image) in zip(keys, images) {
        try await store.setValue(image.bytes, forKey: key)
        try await store.synchronize()
      }
    }
    result.storedCount = try await store.count()

    // The first half is touched when most of the lifetime has passed, and so outlives the second.
    time.advance(by: Self.lifetime * 3 / 4)
    try await result.measure(.touchHalf) {
      for key in keys.prefix(keys.count / 2) {
        try await store.touch(key)
      }
    }
    time.advance(by: Self.lifetime / 2)
    result.liveCount = try await store.count()
    try await store.close()
    return result
  }
}
