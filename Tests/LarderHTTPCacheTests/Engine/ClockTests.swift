#if HTTPCache
import Foundation
import HTTPTypes
import Larder
import LarderTesting
import Testing

@testable import LarderHTTPCache

/// A clock that was ahead while responses were stored, and is set back.
@Suite final class ClockTests: Sendable {
  private static let year = 365.0 * 86_400

  /// The time of the cache, which a test can set back.
  private let time = Locked(Date(timeIntervalSince1970: 1_800_000_000))

  private func makeCache() async throws -> HTTPCache {
    var configuration = HTTPCacheConfiguration.private
    configuration.now = { [self] in time.withLock { $0 } }
    return try await HTTPCache(MemoryStore<[UInt8]>(), configuration: configuration)
  }

  private func load(_ cache: HTTPCache, _ origin: Origin, _ fields: HTTPFields = [:]) async throws -> CacheStatus {
    let response = try await cache.response(to: request("/", fields)) { try await origin($0) }
    _ = try await response.body.bytes(upTo: 1_000)
    return response.cacheStatus
  }

  @Test func `a response from the future is validated once and fresh afterwards`() async throws {
    let cache = try await makeCache()
    let origin = Origin { request, _ in
      let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\""]
      return request.headerFields[.ifNoneMatch] == "\"a\""
        ? HTTPForwardedResponse(head: head(.notModified, fields))
        : HTTPForwardedResponse(head: head(.ok, fields), body: Array("body".utf8))
    }
    #expect(try await load(cache, origin).isStored)
    time.withLock { $0 -= Self.year }
    #expect(try await load(cache, origin).isValidated)
    #expect(try await load(cache, origin).isHit, "the store keeps the time of the clock that is right")
    time.withLock { $0 += 61 }
    #expect(try await load(cache, origin).isValidated)
    #expect(origin.count == 3)
  }

  @Test func `a response without a validator is replaced`() async throws {
    let cache = try await makeCache()
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60"]))
    #expect(try await load(cache, origin).isStored)
    time.withLock { $0 -= Self.year }
    for _ in 0..<2 { _ = try await load(cache, origin) }
    #expect(origin.count == 2)
    time.withLock { $0 += 30 * 86_400 }
    _ = try await load(cache, origin)
    #expect(origin.count == 3)
  }

  /// Otherwise the variants of the wrong clock would stay for as long as it was ahead, and each new one would remove another.
  @Test func `variants from the future make room for others`() async throws {
    let cache = try await makeCache()
    let origin = Origin(head(.ok, [.cacheControl: "max-age=60", .vary: "Accept-Language"]))
    for number in 0..<40 { _ = try await load(cache, origin, [.acceptLanguage: "a\(number)"]) }
    time.withLock { $0 -= Self.year }
    for number in 0..<20 { _ = try await load(cache, origin, [.acceptLanguage: "b\(number)"]) }
    for number in 0..<20 { #expect(try await load(cache, origin, [.acceptLanguage: "b\(number)"]).isHit) }
  }
}
#endif
