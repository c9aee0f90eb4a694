import ArgumentParser
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@main
struct ImageCacheCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ImageCache",
    abstract: "Load images by HTTP through a cache in memory and on disk.",
    discussion: """
      Each URL is loaded twice. The first time, it may come from the disk or the network; the second time, it comes from \
      memory. Call the command again to see what the disk saves.
      """)

  @Argument(help: "The URLs of the images.")
  var urls: [String] = []

  @Option(help: "The folder of the cache.")
  var folder = NSTemporaryDirectory() + "larder-images"

  @Option(help: "The maximum number of bytes on disk.")
  var limit = 200_000_000

  func validate() throws {
    guard limit >= 1 else { throw ValidationError("--limit must be at least 1") }
    for url in urls where URL(string: url)?.scheme?.hasPrefix("http") != true {
      throw ValidationError("\(url) is not the URL of an image on a server")
    }
  }

  func run() async throws {
    guard !urls.isEmpty else { throw CleanExit.helpRequest(self) }
    var limits = ImageCache.Limits()
    limits.disk = limit
    let cache = try await ImageCache(folder: folder, limits: limits) { error in
      FileHandle.standardError.write(Data("\(error)\n".utf8))
    } download: {
      try await ImageCacheCommand.download($0)
    }
    _ = try await cache.removeExpired()
    var hasFailed = false
    for url in (urls + urls).compactMap({ URL(string: $0) }) {
      let start = ContinuousClock.now
      do {
        let image = try await cache.image(at: url)
        let time = (ContinuousClock.now - start) / .milliseconds(1)
        print("\(url): \(TextFormat.count(image.count)) bytes in \(String(format: "%.2f", time)) ms")
      } catch {
        hasFailed = true
        print("\(url): \(error)")
      }
    }
    let statistics = cache.statistics
    let usage = TextFormat.count(try await cache.diskUsage)
    print("\(statistics.found) found, \(statistics.downloaded) downloaded, \(usage) bytes on disk")
    try await cache.close()
    if hasFailed { throw ExitCode.failure }
  }

  /// The error of a server that answers with anything but an image.
  struct UnexpectedStatus: Error, CustomStringConvertible {
    let code: Int
    var description: String { "the server answered with status \(code)" }
  }

  /// Downloads an image.
  ///
  /// - Throws: `URLError` or `UnexpectedStatus`.
  static func download(_ url: URL) async throws -> [UInt8] {
    let (data, response) = try await URLSession.shared.data(from: url)
    let code = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard code == 200 else { throw UnexpectedStatus(code: code) }
    return Array(data)
  }
}
