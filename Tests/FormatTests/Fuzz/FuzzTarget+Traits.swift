import Foundation
import Larder
import LarderTesting

#if Compression
import LarderCompressedFile
import LarderCompression
#endif
#if Crypto
import LarderCBOR
import LarderCrypto
#endif
#if HTTPCache
import HTTPCachingRules
import HTTPTypes
import LarderHTTPCache
#endif

extension FuzzTarget {
  /// Gives the bytes to a target that needs a trait.
  func runWithTrait(_ bytes: [UInt8]) async throws {
    switch self {
    #if Compression
    case .compressedFile: try await Self.openCompressed(bytes)
    case .compressedValue: try Self.reread(bytes, by: JSONCodec<[Int]>().compressed())
    #endif
    #if Crypto
    case .encryptedValue: try await Self.decrypt(bytes)
    case .keyRing: try await Self.readRing(bytes)
    #endif
    #if HTTPCache
    case .httpFields: try Self.decideOnFields(bytes)
    case .httpURL: try Self.readRequestURL(bytes)
    case .httpRecord: try await Self.readRecord(bytes)
    #endif
    #if LMDB
    case .lmdbPages: try await FuzzedPages.read(bytes)
    #endif
    default: break
    }
  }

  #if Compression
  private static func openCompressed(_ bytes: [UInt8]) async throws {
    let file = bytes.first.map { $0 & 1 == 1 } == true ? sealed(texts: bytes.dropFirst()) : bytes
    try await FuzzedFiles.open(["/s.gz": file], writing: 7) {
      try await CompressedFileStore<Int>(path: "/s.gz", codec: .json(), fileSystem: $0)
    }
  }

  /// Puts each text that a NUL ends into a block with the right seal, after a head and an end mark.
  private static func sealed(texts: ArraySlice<UInt8>) -> [UInt8] {
    let salt = "0123456789abcdef"
    let head = "{\"larder\":2,\"format\":\"compressed\",\"codec\":\"json\",\"salt\":\"\(salt)\"}\n"
    let mark = "{\"end\":null,\"larder\":2,\"format\":\"compressed\",\"codec\":\"json\",\"salt\":\"\(salt)\"}\n"
    let parts = [Array(head.utf8)[...], Array(mark.utf8)[...]] + texts.split(separator: 0)
    var file: [UInt8] = []
    for text in parts {
      // After the time in gzip: the flags, the subfield of BGZF, and a stored block of deflate, so no compression is needed.
      var rest: [UInt8] = [0, 255, 6, 0, UInt8(ascii: "B"), UInt8(ascii: "C"), 2, 0]
      rest.append(little: 18 + 5 + text.count + 8 - 1, count: 2)
      rest.append(1)
      rest.append(little: text.count, count: 2)
      rest.append(little: ~text.count, count: 2)
      rest += text
      rest.append(little: Int(crc32(text)), count: 4)
      rest.append(little: text.count, count: 4)
      var sealed = Array((Hexadecimal.bytes(of: salt.utf8) ?? []).reversed())
      sealed.append(little: file.count, count: 8)
      sealed.append(little: Int(CRC32C.checksum(of: rest)), count: 4)
      let seal = CRC32C.checksum(of: sealed)
      file += [0x1F, 0x8B, 8, 4]
      file.append(little: Int(seal == 0 ? 1 : seal), count: 4)
      file += rest
    }
    return file
  }

  /// The checksum of gzip.
  private static func crc32(_ bytes: some Sequence<UInt8>) -> UInt32 {
    ~bytes.reduce(~0) { crc, byte in
      (0..<8).reduce(crc ^ UInt32(byte)) { crc, _ in crc >> 1 ^ (crc & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
  }
  #endif

  #if Crypto
  /// A source whose content is the bytes.
  private struct Source: KeySource {
    let content: [UInt8]
    func load() async throws -> [UInt8]? { content }
    func save(_ content: [UInt8], replacing previous: [UInt8]?) async throws {}
  }

  private static let ring = """
    {"keys":[{"kty":"oct","kid":"5aa8cf3d1bc03fca","alg":"A256GCM","iat":1767225600,\
    "k":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"}],"primary":"5aa8cf3d1bc03fca"}
    """

  private static func decrypt(_ bytes: [UInt8]) async throws {
    let ring = try await KeyRing.open(in: Source(content: Array(ring.utf8)))
    try reread(bytes, by: CBORCodec<[Int]>().encrypted(with: ring, purpose: "p"))
  }

  private static func readRing(_ bytes: [UInt8]) async throws {
    let ring: KeyRing
    do { ring = try await KeyRing.open(in: Source(content: bytes)) } catch is KeyRingError { return }
    try expect(ring.keys.contains { $0.id == ring.primary }, "a ring without its primary key was read")
    // Values can be written and read with every ring that is accepted.
    let codec = CBORCodec<[Int]>().encrypted(with: ring, purpose: "p")
    var stored: [UInt8] = []
    try codec.encode([1], into: &stored)
    let value = try stored.withUnsafeBytes { try codec.decode($0.bytes) }
    try expect(value == [1], "a value is read as \(value)")
  }
  #endif

  #if HTTPCache
  /// Each line is a field of a request or a response, and its first byte chooses which field.
  private static func decideOnFields(_ bytes: [UInt8]) throws {
    var names: [HTTPField.Name] =
      [
        .cacheControl, .age, .date, .expires, .eTag, .lastModified, .vary, .range, .contentRange, .ifNoneMatch,
        .ifRange,
        .ifModifiedSince, .contentLength, .location, .authorization,
      ]
    names += ["Cache-Status", "CDN-Cache-Control"].compactMap { HTTPField.Name($0) }
    var (request, response): (HTTPFields, HTTPFields) = ([:], [:])
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      guard let first = line.first else { continue }
      let field = HTTPField(
        name: names[Int(first >> 1) % names.count], value: String(decoding: line.dropFirst(), as: UTF8.self))
      if first & 1 == 1 { request.append(field) } else { response.append(field) }
    }
    let now = Date(timeIntervalSince1970: 1_800_000_000)
    for field in response { _ = CacheStatus(fieldValue: field.value)?.fieldValue(name: "a") }
    var asked = HTTPRequest(method: .get, scheme: "https", authority: "a.example", path: "/")
    asked.headerFields = request
    for mode in [HTTPCacheMode.private, .shared] {
      let rules = HTTPCacheRules(mode: mode)
      let decision = rules.decide(request: asked, url: "https://a.example/", stored: [], now: now)
      guard case .forward(let exchange) = decision else { continue }
      for status in [HTTPResponse.Status.ok, .partialContent, .notModified, .movedPermanently] {
        let head = HTTPResponse(status: status, headerFields: response)
        _ = rules.decide(response: head, to: exchange, requestTime: now, responseTime: now)
      }
    }
  }

  private static func readRequestURL(_ bytes: [UInt8]) throws {
    let url: RequestURL
    do { url = try RequestURL(String(decoding: bytes, as: UTF8.self)) } catch { return }
    let again = try RequestURL(url.text)
    try expect(again.text == url.text, "\(url.text) is normalized to \(again.text)")
    _ = url.resolving(bytes)
  }

  /// A record of a response that a cache finds for a request.
  private static func readRecord(_ bytes: [UInt8]) async throws {
    let base = MemoryStore<[UInt8]>()
    let url = "https://a.example/"
    var key = Array("http/r\(url)".utf8)
    key += [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    var totals: [UInt8] = [3]
    for number in [key.count + bytes.count, 1, 1, 0, 0, 0] { totals += UInt64(number).bigEndianBytes }
    try await base.setValue(bytes, forKey: StoreKey(bytes: key))
    try await base.setValue(totals, forKey: "http/t")
    var configuration = HTTPCacheConfiguration.private
    configuration.now = { Date(timeIntervalSince1970: 1_800_000_000) }
    let cache = try await HTTPCache(base, configuration: configuration)
    let request = HTTPRequest(method: .get, scheme: "https", authority: "a.example", path: "/")
    let response = try await cache.response(to: request) { _ in
      HTTPForwardedResponse(head: HTTPResponse(status: .ok), body: Array("fresh".utf8))
    }
    do {
      let body = try await response.body.bytes(upTo: 1_000)
      // The record names bodies of which the store has no chunk.
      try expect(response.cacheStatus.isBodyFromStore || body == Array("fresh".utf8), "a body was invented")
    } catch is StoreError {}
  }
  #endif
}
