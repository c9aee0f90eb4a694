import AsyncHTTPClient
import Foundation
import HTTPTestSupport
import Larder
import LarderHTTPCache
import LarderHTTPClient
import LarderTesting
import NIOCore
import NIOHTTP1
import Testing

@Suite("Decoded bodies", .timeLimit(.minutes(5)))
struct DecodingTests {
  private static let text = "hello, hello, hello"
  private static let gzip: [UInt8] = [
    0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7,
    0x51, 0xC8, 0x40, 0xA2, 0x00, 0x9F, 0xA1, 0xCA, 0x09, 0x13, 0x00, 0x00, 0x00,
  ]
  private static let deflate: [UInt8] = [
    0x78, 0x9C, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0xD7, 0x51, 0xC8, 0x40, 0xA2, 0x00, 0x44, 0x28, 0x06,
    0xD5,
  ]

  /// An archive that is compressed once more, and decodes to bytes that begin like gzip.
  private static let archive = stored(gzip)

  /// Returns bytes in gzip, in one block that is not compressed.
  private static func stored(_ bytes: [UInt8]) -> [UInt8] {
    let (length, checksum) = (UInt16(bytes.count), crc32(bytes))
    return [0x1F, 0x8B, 0x08, 0, 0, 0, 0, 0, 0, 3, 1]
      + [length, ~length].flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
      + bytes
      + [checksum, UInt32(bytes.count)].flatMap { value in
        stride(from: 0, to: 32, by: 8).map { UInt8(truncatingIfNeeded: value >> $0) }
      }
  }

  private static func crc32(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(~UInt32(0)) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in (sum >> 1) ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
  }

  /// The bytes of a message as text.
  private static func characters(_ bytes: [UInt8]) -> String {
    String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }

  /// Runs a closure in front of an origin that answers with a body in the coding that the field `X-Coding` of the request
  /// names.
  private func run(
    decodes: Bool = true, body wire: [UInt8] = gzip, chunked: Bool = false, _ body: (Setting) async throws -> Void
  ) async throws {
    try await Setting.run(decodesBodies: decodes) { request, connection in
      let fields = ["Cache-Control: max-age=60", "ETag: \"1\"", "Vary: Accept-Encoding"].joined(separator: "\r\n")
      if request["If-None-Match"].joined().contains("\"1\"") {
        try await connection.send("HTTP/1.1 304 Not Modified\r\n\(fields)\r\n\r\n")
        return .keep
      }
      let head = "\(fields)\r\nContent-Encoding: \(request["X-Coding"].joined())"
      let characters = Self.characters(wire)
      if chunked {
        let size = String(wire.count, radix: 16)
        try await connection.send(
          "HTTP/1.1 200 OK\r\n\(head)\r\nTransfer-Encoding: chunked\r\n\r\n\(size)\r\n\(characters)\r\n0\r\n\r\n")
      } else if request.method == "HEAD" {
        // A response to HEAD ends with its head.
        try await connection.send("HTTP/1.1 200 OK\r\n\(head)\r\nContent-Length: \(wire.count)\r\n\r\n")
      } else {
        try await connection.send(response(head, body: characters))
      }
      return .keep
    } _: { setting async throws in
      try await body(setting)
    }
  }

  private func get(_ setting: Setting, _ coding: String) async throws -> (HTTPClientResponse, [UInt8]) {
    let request = setting.request("/", fields: [("X-Coding", coding)])
    let response = try await setting.http.execute(request, timeout: .seconds(10))
    return (response, Array(buffer: try await response.body.collect(upTo: 1 << 20)))
  }

  @Test(
    "A body is stored as it was sent and decoded when it is read, whatever the letters of its coding",
    arguments: ["gzip", "GZIP", "Gzip", "x-gzip", "identity, gzip"], [true, false])
  func decoded(coding: String, chunked: Bool) async throws {
    try await run(chunked: chunked) { setting async throws in
      for isHit in [false, true] {
        let (response, body) = try await get(setting, coding)
        #expect(body == Array(Self.text.utf8) && response.cacheStatus?.isHit == isHit)
        #expect(response.headers["Content-Encoding"].isEmpty && response.headers["Content-Length"].isEmpty)
        #expect(response.headers["ETag"] == ["\"1\""])
      }
      setting.clock.advance(by: .seconds(100))
      let (validated, body) = try await get(setting, coding)
      #expect(body == Array(Self.text.utf8) && validated.cacheStatus?.isValidated == true)
      #expect(setting.origin.requests.count == 2)
      #expect(setting.origin.requests.allSatisfy { $0["Accept-Encoding"] == ["gzip, deflate"] })
      // The stored response agrees with its fields.
      try await Setting.with(CachedHTTPClient(cache: setting.cache, decodesBodies: false)) { http in
        let request = setting.request("/", fields: [("Accept-Encoding", "gzip, deflate")])
        let stored = try await http.execute(request, timeout: .seconds(10))
        #expect(try await Array(buffer: stored.body.collect(upTo: 1000)) == Self.gzip)
        #expect(stored.cacheStatus?.isHit == true && !stored.headers["Content-Encoding"].isEmpty)
      }
    }
  }

  @Test("A body is decoded as often as its field says")
  func formats() async throws {
    let text = Array(Self.text.utf8)
    let fourTimes = (0..<4).reduce(Self.gzip) { bytes, _ in Self.stored(bytes) }
    let bodies: [(coding: String, wire: [UInt8], text: [UInt8])] = [
      ("deflate", Self.deflate, text), ("gzip", Self.archive, Self.gzip), ("gzip, gzip", Self.archive, text),
      ("deflate, gzip", Self.stored(Self.deflate), text), ("gzip, gzip, gzip, gzip, gzip", fourTimes, text),
      ("gzip, gzip", Self.archive + Self.archive, text + text), ("gzip, gzip", [], []),
    ]
    for (coding, wire, text) in bodies {
      try await run(body: wire) { setting async throws in
        for isHit in [false, true] {
          let (response, body) = try await get(setting, coding)
          #expect(body == text && response.cacheStatus?.isHit == isHit)
        }
      }
    }
  }

  @Test("Without decoding, a body and its head are those that the origin sent")
  func encoded() async throws {
    try await run(decodes: false) { setting async throws in
      for isHit in [false, true] {
        let (response, body) = try await get(setting, "gzip")
        #expect(body == Self.gzip && response.cacheStatus?.isHit == isHit)
        #expect(response.headers["Content-Encoding"] == ["gzip"] && response.headers["ETag"] == ["\"1\""])
        #expect(response.headers["Content-Length"] == ["\(Self.gzip.count)"])
      }
      #expect(setting.origin.requests.map { $0["Accept-Encoding"] } == [[]])
    }
  }

  @Test(
    "HEAD, other codings and several of them are passed on as they are, and stored",
    arguments: ["br", "gzip, br", "gzip, gzip, gzip, gzip, gzip, gzip"])
  func others(coding: String) async throws {
    try await run { setting async throws in
      let head = try await setting.send(setting.request("/", .head, fields: [("X-Coding", "gzip")]))
      #expect(head["Content-Encoding"] == ["gzip"] && head["Content-Length"] == ["\(Self.gzip.count)"])
      for isHit in [false, true] {
        let (response, body) = try await get(setting, coding)
        #expect(body == Self.gzip && response.cacheStatus?.isHit == isHit)
        #expect(response.headers["Content-Encoding"] == [coding])
      }
    }
  }

  @Test func `A body in a transfer coding that the client does not remove is not stored`() async throws {
    try await Setting.run { _, wire in
      try await wire.send(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
      return .keep
    } _: { setting async throws in
      let received = try await setting.send(setting.request("/"))
      #expect(received.body == "x" && received.response.cacheStatus?.detail == "not-stored-client")
    }
  }

  @Test("A range is asked for as it is, and a part of an encoded body is not decoded")
  func range() async throws {
    try await run { setting async throws in
      _ = try await get(setting, "gzip")
      var request = setting.request("/", fields: [("Range", "bytes=2-5"), ("Accept-Encoding", "gzip, deflate")])
      let part = try await setting.http.execute(request, timeout: .seconds(10))
      #expect(part.status == .partialContent && part.headers["Content-Encoding"] == ["gzip"])
      #expect(try await Array(buffer: part.body.collect(upTo: 100)) == Array(Self.gzip[2...5]))
      request.headers.remove(name: "Accept-Encoding")
      _ = try await setting.send(request)
      #expect(setting.origin.requests.last?["Accept-Encoding"] == [])
    }
  }

  @Test("An empty body is whole, members and zeros may follow a member, and damage is an error")
  func edges() async throws {
    let text = Array(Self.text.utf8)
    let bodies: [(sent: [UInt8], decoded: [UInt8])] = [
      ([], []), (Self.gzip + Self.gzip, text + text), (Self.stored([]), []),
      (Self.gzip + [UInt8](repeating: 0, count: 200_000), text), (Self.gzip + Self.gzip + [0], text + text),
      (Self.stored([UInt8](repeating: 7, count: 65_535)), [UInt8](repeating: 7, count: 65_535)),
    ]
    for (sent, decoded) in bodies {
      try await run(body: sent) { setting async throws in #expect(try await get(setting, "gzip").1 == decoded) }
    }
    let damaged: [([UInt8], HTTPBodyDecodingError)] = [
      (Self.gzip.dropLast(), .incomplete), (Self.gzip + [1, 2, 3, 4], .damaged), (text, .damaged),
      (Self.gzip + [0, 0] + Self.gzip, .damaged), ([0] + Self.gzip, .damaged),
      (Self.gzip + Self.gzip.dropLast(), .incomplete),
    ]
    for (sent, error) in damaged {
      try await run(body: sent) { setting async throws in
        await #expect(throws: error) { try await get(setting, "gzip") }
        // It is stored as it was sent, and fails again.
        await #expect(throws: error) { try await get(setting, "gzip") }
      }
    }
  }

  /// 300,000 zeros in gzip.
  private static let zeros = """
    H4sIAAAAAAACA+3BAQ0AAADCoPdPbQ8HFAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAAAAAAAAAAAAAAA/Bj74rL24JMEAA==
    """

  @Test("A small body that decodes to a large one arrives in small pieces")
  func pieces() async throws {
    let wire = try #require(Data(base64Encoded: Self.zeros, options: .ignoreUnknownCharacters))
    #expect(wire.count < 1000)
    try await run(body: Array(wire)) { setting async throws in
      let response = try await setting.http.execute(
        setting.request("/", fields: [("X-Coding", "gzip")]), timeout: .seconds(10))
      var count = 0
      for try await buffer in response.body {
        #expect(buffer.readableBytes <= 65_536 && buffer.capacity <= 1 << 18)
        count += buffer.readableBytes
      }
      #expect(count == 300_000)
    }
  }
}
