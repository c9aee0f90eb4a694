import Larder
import LarderExpiry

/// A test of a store as a cache of images, which fills, reads and clears it, fills it again, and lets its images
/// expire.
///
/// It is the classic comparison of a cache in files with one in a database. Every step is verified.
struct CacheTest {
  /// The time to live of an image.
  static let timeToLive = Duration.seconds(3600)

  /// The images to store, each under its own key.
  let images: [Image]

  /// The clock of the store, which is advanced to let images expire.
  let time = ManualTime()

  /// Tests a store.
  ///
  /// - Parameters:
  ///   - base: The empty store. It is closed at the end.
  ///   - name: The name of the store in the result.
  /// - Returns: The duration of each step, and the counts.
  /// - Throws: ``CacheTestFailure`` if the store does not return the stored images, or the error of the store.
  func run(on base: some DataStore<Expiring<[UInt8]>>, named name: String) async throws -> CacheTestResult {
    let time = time
    let store = base.expiring(.sliding(Self.timeToLive), now: { time.date })
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

    // The first half is touched near the end of its time to live, and therefore outlives the second.
    time.advance(by: Self.timeToLive * 3 / 4)
    try await result.measure(.touchHalf) {
      for key in keys.prefix(keys.count / 2) {
        try await store.touch(key)
      }
    }
    time.advance(by: Self.timeToLive / 2)
    result.liveCount = try await store.count()
    try await store.close()
    return result
  }
}
