import Foundation
import Larder
import LarderBounded
import LarderCache
import LarderExpiry
import LarderLMDB

/// A cache of images in memory and, within a limit, on disk.
///
/// The stack, from below: bytes in LMDB, a limit in bytes with eviction, deadlines in the values, a cache in memory whose
/// costs are bytes, and expiry. Expiry stands above the cache, which could otherwise serve expired images.
final class ImageCache: Sendable {
  typealias Download = @Sendable (URL) async throws -> [UInt8]
  private typealias Images = ExpiringStore<
    CachedStore<TypedView<BoundedStore<LMDBStore<[UInt8]>>, Expiring<[UInt8]>>>, [UInt8]
  >

  /// The limits of the cache.
  struct Limits: Sendable {
    /// The maximum number of bytes on disk.
    ///
    /// An image larger than a twentieth of it is not stored.
    var disk = 200_000_000
    /// The maximum number of bytes in memory.
    var memory = 50_000_000
    /// The duration for which an image is served.
    var timeToLive = Duration.seconds(7 * 86_400)
  }

  /// The counts of an image cache since it was opened.
  struct Statistics: Sendable, Equatable {
    var found = 0
    var downloaded = 0
    /// The number of images that could not be read from the disk or stored there.
    var failures = 0
  }

  private struct State: Sendable {
    var downloads: [URL: Task<[UInt8], any Error>] = [:]
    var statistics = Statistics()
  }

  private let disk: BoundedStore<LMDBStore<[UInt8]>>
  private let images: Images
  private let download: Download
  private let onFailure: @Sendable (any Error) -> Void
  private let state = Locked(State())

  /// Opens a cache.
  ///
  /// - Parameters:
  ///   - folder: The folder of the images. It is created if it is missing.
  ///   - limits: The limits.
  ///   - now: Returns the current time. Defaults to the system time.
  ///   - onFailure: Receives the error of each image that could not be read from the disk or stored there. The image is
  ///     downloaded then, or not stored.
  ///   - download: Downloads an image.
  /// - Throws: The errors of opening the stores.
  init(
    folder: String, limits: Limits = Limits(), now: @escaping @Sendable () -> Date = { Date.now },
    onFailure: @escaping @Sendable (any Error) -> Void, download: @escaping Download
  ) async throws {
    // Images can be downloaded again, so their writes need not wait for the disk.
    disk = try await LMDBStore(path: folder, codec: .raw, durability: .buffered).bounded(bytes: limits.disk)
    let memory = CachedStoreConfiguration<Expiring<[UInt8]>>(costLimit: limits.memory) { _, image in image.value.count }
    images = disk.typed(Expiring<[UInt8]>.self, codec: .raw.expiring()).cached(memory)
      .expiring(.after(limits.timeToLive), now: now)
    self.onFailure = onFailure
    self.download = download
  }

  /// The counts since the cache was opened.
  var statistics: Statistics { state.withLock { $0.statistics } }

  /// Returns the number of bytes on disk, at most the limit.
  var diskUsage: Int {
    get async throws { try await disk.usage().bytes }
  }

  /// Returns an image, from memory, from the disk or from its URL.
  ///
  /// Callers that need the same image at the same time share one download.
  ///
  /// - Throws: The error of the download.
  func image(at url: URL) async throws -> [UInt8] {
    if let image = try await storedImage(at: url) {
      state.withLock { $0.statistics.found += 1 }
      return image
    }
    return try await task(for: url).value
  }

  private func task(for url: URL) -> Task<[UInt8], any Error> {
    state.withLock { state in
      if let task = state.downloads[url] { return task }
      let task = Task { [self] in
        defer { self.state.withLock { $0.downloads[url] = nil } }
        // Another download may have ended since the caller looked.
        if let image = try await storedImage(at: url) { return image }
        let image = try await download(url)
        self.state.withLock { $0.statistics.downloaded += 1 }
        await store(image, at: url)
        return image
      }
      state.downloads[url] = task
      return task
    }
  }

  /// A URL of any length has a key within the limit of the store.
  private func key(_ url: URL) -> StoreKey {
    StoreKey(shortening: url.absoluteString, limit: images.information.maximumKeyLength)
  }

  private func storedImage(at url: URL) async throws -> [UInt8]? {
    do {
      return try await images.value(forKey: key(url))
    } catch let error as StoreError {
      fail(error)
      return nil
    }
  }

  private func store(_ image: [UInt8], at url: URL) async {
    do {
      try await images.setValue(image, forKey: key(url))
    } catch {
      fail(error)
    }
  }

  private func fail(_ error: any Error) {
    state.withLock { $0.statistics.failures += 1 }
    onFailure(error)
  }

  /// Removes images from the disk whose time to live is over.
  ///
  /// - Returns: The number of images.
  func removeExpired() async throws -> Int {
    try await images.purgeExpired(limit: .max)
  }

  /// Removes all images.
  func removeAll() async throws {
    try await images.removeAll()
  }

  /// Closes the cache.
  func close() async throws {
    try await images.close()
  }
}
