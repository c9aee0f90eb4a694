import Foundation
import Larder
import Testing

@testable import ImageCache

/// A cache of images over a server that the test controls.
@Suite(.timeLimit(.minutes(5))) final class ImageCacheTests {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID())").path
  private let server = Server()
  private let clock = Clock()

  deinit {
    do {
      try FileManager.default.removeItem(atPath: folder)
    } catch {
      Issue.record(error, "the folder of a test could not be removed")
    }
  }

  private final class Clock: Sendable {
    private let time = Locked(Date(timeIntervalSince1970: 1_000_000))

    var now: Date { time.withLock { $0 } }

    func pass(_ seconds: Double) { time.withLock { $0 += seconds } }
  }

  /// A server of images of 1,000 bytes, or of the size after `?`.
  private final class Server: Sendable {
    private let requested = Locked<[String]>([])

    var requests: [String] { requested.withLock { $0 } }

    func download(_ url: URL) async throws -> [UInt8] {
      requested.withLock { $0.append(url.lastPathComponent) }
      guard url.lastPathComponent != "missing" else { throw URLError(.fileDoesNotExist) }
      // Others get the time to ask for the same image.
      for _ in 0..<100 { await Task.yield() }
      return [UInt8](repeating: 7, count: url.query.flatMap { Int($0) } ?? 1000)
    }
  }

  private func open(_ limits: ImageCache.Limits = ImageCache.Limits()) async throws -> ImageCache {
    try await ImageCache(folder: folder, limits: limits) { [clock] in
      clock.now
    } onFailure: {
      Issue.record($0)
    } download: { [server] in
      try await server.download($0)
    }
  }

  private func url(_ path: String) throws -> URL { try #require(URL(string: "https://example.com/\(path)")) }

  @Test func `images outlive the program`() async throws {
    let long = try url("b?1000&" + String(repeating: "x", count: 1000))
    var cache = try await open()
    for _ in 0..<2 {
      #expect(try await cache.image(at: url("a")).count == 1000)
      #expect(try await cache.image(at: long).count == 1000)
    }
    #expect(cache.statistics == ImageCache.Statistics(found: 2, downloaded: 2))
    try await cache.close()
    cache = try await open()
    #expect(try await cache.image(at: url("a")).count == 1000)
    #expect(try await cache.image(at: long).count == 1000)
    #expect(server.requests == ["a", "b"])
    try await cache.close()
  }

  @Test func `callers share a download`() async throws {
    let cache = try await open()
    let image = try url("a")
    try await withThrowingTaskGroup { group in
      for _ in 0..<50 { group.addTask { try await cache.image(at: image) } }
      try await group.waitForAll()
    }
    #expect(server.requests == ["a"])
    let missing = try url("missing")
    await #expect(throws: URLError.self) { try await cache.image(at: missing) }
    await #expect(throws: URLError.self) { try await cache.image(at: missing) }
    #expect(server.requests == ["a", "missing", "missing"])
    try await cache.close()
  }

  @Test func `the disk keeps its limit`() async throws {
    var limits = ImageCache.Limits()
    (limits.disk, limits.memory) = (100_000, 1)
    let cache = try await open(limits)
    let often = try url("often")
    for number in 0..<300 {
      #expect(try await cache.image(at: url("\(number)")).count == 1000)
      #expect(try await cache.image(at: often).count == 1000)
      #expect(try await cache.diskUsage <= 100_000)
    }
    #expect(try await cache.diskUsage > 90_000)
    // The image in use was downloaded once, and the first one had to go.
    #expect(server.requests.count { $0 == "often" } == 1)
    _ = try await cache.image(at: url("0"))
    #expect(server.requests.last == "0" && server.requests.count == 302)
    // An image above a twentieth of the limit displaces nothing.
    let usage = try await cache.diskUsage
    #expect(try await cache.image(at: url("large?6000")).count == 6000)
    #expect(try await cache.diskUsage == usage)
    try await cache.close()
  }

  @Test func `images expire`() async throws {
    var limits = ImageCache.Limits()
    limits.timeToLive = .seconds(60)
    let cache = try await open(limits)
    _ = try await cache.image(at: url("a"))
    clock.pass(59)
    _ = try await cache.image(at: url("a"))
    #expect(server.requests == ["a"])
    clock.pass(1)
    _ = try await cache.image(at: url("a"))
    #expect(server.requests == ["a", "a"])
    clock.pass(60)
    #expect(try await cache.removeExpired() == 1)
    #expect(try await cache.diskUsage == 0)
    _ = try await cache.image(at: url("a"))
    try await cache.removeAll()
    #expect(try await cache.diskUsage == 0)
    try await cache.close()
  }

  /// Over the server of Python.
  @Test func `loads from a server`() async throws {
    let site = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID())")
    try FileManager.default.createDirectory(at: site, withIntermediateDirectories: true)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: site) } }
    try Data(repeating: 1, count: 5000).write(to: site.appending(path: "a.png"))
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", site.path]
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    // The process inherits the blocked signals of this thread, so a request to end would not arrive.
    defer { kill(process.processIdentifier, SIGKILL) }
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    let port = try #require(line.split(separator: " ").compactMap { Int($0) }.first)
    let image = try #require(URL(string: "http://127.0.0.1:\(port)/a.png"))
    let cache = try await ImageCache(folder: folder) {
      Issue.record($0)
    } download: {
      try await ImageCacheCommand.download($0)
    }
    #expect(try await cache.image(at: image).count == 5000)
    let missing = try #require(URL(string: "http://127.0.0.1:\(port)/b.png"))
    await #expect(throws: ImageCacheCommand.UnexpectedStatus.self) { try await cache.image(at: missing) }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    #expect(try await cache.image(at: image).count == 5000)
    try await cache.close()
  }
}
