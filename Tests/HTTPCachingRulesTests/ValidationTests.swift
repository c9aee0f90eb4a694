#if HTTPCache
import Foundation
import HTTPTypes
import Testing

@testable import HTTPCachingRules

/// RFC 9111, sections 3.2, 4.2.4, 4.3 and 4.4.
struct ValidationTests {
  private func stored(_ fields: HTTPFields, _ mode: HTTPCacheMode = .shared, for request: HTTPFields = [:]) throws
    -> Session
  {
    var session = Session(mode)
    try session.store(fields, for: request)
    return session
  }

  @Test("4.3.1: the tag and the date of the stored response are sent, and replace the client's date")
  func conditions() throws {
    let modified = dateText(-5_000)
    var session = try stored([.cacheControl: "max-age=1", .eTag: "W/\"a\"", .lastModified: modified])
    let result = try session.request(.get, "/", [.ifModifiedSince: dateText(-9_000)], at: 5) { _ in
      .init(status: 304, fields: [.eTag: "W/\"a\""])
    }
    #expect(result.forwarded[0].headerFields[.ifNoneMatch] == "W/\"a\"")
    #expect(result.forwarded[0].headerFields[.ifModifiedSince] == modified)
    #expect(result.status == 200)
    #expect(result.body == "body")
    #expect(result.cache.isValidated)
  }

  @Test("4.3.1: the tags of all responses that match, and those of the client")
  func union() throws {
    var session = Session()
    try session.store([.cacheControl: "max-age=1", .eTag: "\"1\"", .vary: "Color"], body: "1", for: [.color: "1"])
    try session.store([.cacheControl: "max-age=1", .eTag: "\"2\"", .date: dateText(-9)], body: "2", for: [.color: "2"])
    let request: HTTPFields = [.color: "1", .ifNoneMatch: "\"3\", \"1\""]
    let result = try session.request(.get, "/", request, at: 5) { _ in .init(status: 304, fields: [.eTag: "\"2\""]) }
    #expect(result.forwarded[0].headerFields[.ifNoneMatch] == "\"1\", \"2\", \"3\"")
    // The 304 was for the cache: the client had another tag.
    #expect(result.status == 200)
    #expect(result.body == "2")
    let own = try session.request(.get, "/", request, at: 9) { _ in .init(status: 304, fields: [.eTag: "\"3\""]) }
    #expect(own.status == 304)
    #expect(own.forwarded.count == 1)
    // No tag, and three that it can be about: the client's request is made as it is.
    let again = try session.request(.get, "/", request, at: 10) { _ in .init(status: 304, fields: [:]) }
    #expect(again.forwarded.count == 2)
    #expect(again.forwarded[1].headerFields[.ifNoneMatch] == "\"3\", \"1\"")
  }

  @Test func `4.3.2: a client's condition is answered by the stored response`() throws {
    let modified = dateText(-5_000)
    for (request, status) in [
      ([.ifNoneMatch: "\"a\""], 304), ([.ifNoneMatch: "W/\"a\""], 304), ([.ifNoneMatch: "\"b\", \"a\""], 304),
      ([.ifNoneMatch: "*"], 304), ([.ifNoneMatch: "\"b\""], 200), ([.ifModifiedSince: modified], 304),
      ([.ifModifiedSince: dateText(-4_000)], 304), ([.ifModifiedSince: dateText(-6_000)], 200),
      ([.ifModifiedSince: "x"], 200), ([.ifNoneMatch: "\"b\"", .ifModifiedSince: modified], 200),
    ] as [(HTTPFields, Int)] {
      var session = try stored([
        .cacheControl: "max-age=60", .eTag: "\"a\"", .lastModified: modified, .contentType: "a/b", .vary: "Color",
      ])
      let result = try session.request(.get, "/", request, at: 1)
      #expect(result.isHit)
      #expect(result.status == status, "\(request)")
      #expect(result.fields[.eTag] == "\"a\"")
      #expect((result.fields[.contentType] == nil) == (status == 304))
      #expect(result.body == (status == 304 ? "" : "body"))
    }
  }

  @Test func `4.3.2: without Last-Modified, Date is compared with If-Modified-Since`() throws {
    var session = try stored([.cacheControl: "max-age=60"])
    #expect(try session.request(.get, "/", [.ifModifiedSince: dateText(0)], at: 1).status == 304)
    #expect(try session.request(.get, "/", [.ifModifiedSince: dateText(-1)], at: 1).status == 200)
  }

  @Test func `RFC 9110, 13.1.3: of several dates, none counts`() throws {
    var session = try stored([.cacheControl: "max-age=60", .lastModified: dateText(-100)])
    let request = HTTPFields([
      .init(name: .ifModifiedSince, value: "x"), .init(name: .ifModifiedSince, value: dateText(0)),
    ])
    #expect(try session.request(.get, "/", request, at: 1).status == 200)
  }

  @Test(arguments: [HTTPField.Name.ifMatch, .ifUnmodifiedSince])
  func `4.3.2: If-Match and If-Unmodified-Since always go to the origin`(name: HTTPField.Name) throws {
    var session = try stored([.cacheControl: "max-age=60", .eTag: "\"a\""])
    let result = try session.request(.get, "/", [name: "\"a\""], at: 1) { _ in .init(status: 412) }
    #expect(result.status == 412)
    #expect(result.forwarded[0].headerFields[.ifNoneMatch] == nil)
  }

  @Test func `RFC 9110, 13.2.1: conditions don't count for an error that is stored`() throws {
    var session = Session()
    try session.store([.cacheControl: "max-age=60", .eTag: "\"a\""], status: 404)
    #expect(try session.request(.get, "/", [.ifNoneMatch: "\"a\""], at: 1).status == 404)
  }

  @Test("3.2: a 304 updates the fields, but never those that describe the body")
  func update() throws {
    var session = Session()
    try session.store([
      .cacheControl: "max-age=1", .eTag: "\"a\"", .color: "1", .server: "x", .age: "9", .contentEncoding: "gzip",
      .contentLength: "4",
    ])
    let result = try session.request(at: 5) { _ in
      .init(
        status: 304,
        fields: [
          .cacheControl: "max-age=60", .eTag: "\"a\"", .color: "2", .color: "3", .contentEncoding: "br",
          .contentLength: "0", .contentRange: "bytes 0-1/2", .connection: "x",
        ])
    }
    #expect(result.fields[.color] == "2, 3")
    #expect(result.fields[.server] == "x")
    #expect(result.fields[.contentEncoding] == "gzip")
    #expect(result.fields[.contentLength] == "4")
    #expect(result.fields[.contentRange] == nil)
    #expect(result.fields[.connection] == nil)
    #expect(result.fields[.age] == "0")
    let hit = try session.request(at: 64)
    #expect(hit.isHit)
    #expect(hit.fields[.color] == "2, 3")
    #expect(hit.fields[.date] == dateText(5))
  }

  @Test("4.3.4: the responses that a 304 updates")
  func identification() throws {
    for (tag, reply, isUpdated) in [
      ("\"a\"", ["\"a\""], true), ("W/\"a\"", ["W/\"a\""], true), ("\"a\"", ["W/\"a\""], true), ("\"a\"", [], true),
      ("W/\"a\"", ["\"a\""], false), ("\"a\"", ["\"b\""], false),
    ] as [(String, [String], Bool)] {
      var session = try stored([.cacheControl: "max-age=1", .eTag: tag])
      var fields: HTTPFields = [.cacheControl: "max-age=60"]
      if let tag = reply.first { fields[.eTag] = tag }
      let result = try session.request(at: 5) { _ in .init(status: 304, fields: fields) }
      // It was asked about one response only, and so confirms it in any case.
      #expect(result.status == 200)
      #expect(result.forwarded.count == 1)
      #expect(try session.request(at: 6).isHit == isUpdated, "\(tag) \(reply)")
    }
  }

  @Test func `4.3.4: a 304 that forbids storing removes the stored response`() throws {
    var session = try stored([.cacheControl: "max-age=1", .eTag: "\"a\""])
    let result = try session.request(at: 5) { _ in
      .init(status: 304, fields: [.cacheControl: "no-store", .eTag: "\"a\""])
    }
    #expect(result.body == "body")
    #expect(session.stored().isEmpty)
  }

  @Test func `3.5: a 304 to one user doesn't update a shared response`() throws {
    var session = try stored([.cacheControl: "max-age=1", .eTag: "\"a\"", .color: "1"])
    let result = try session.request(.get, "/", [.authorization: "x"], at: 5) { _ in
      .init(status: 304, fields: [.eTag: "\"a\"", .color: "2"])
    }
    #expect(result.fields[.color] == "2")
    #expect(session.stored().map { $0.fields[.color] } == ["1"])
  }

  @Test func `A cookie in a 304 is for one client, and neither updates nor removes a shared response`() throws {
    let fields: HTTPFields = [.cacheControl: "max-age=1", .eTag: "\"a\"", .color: "1"]
    var session = try stored(fields)
    let result = try session.request(at: 5) { _ in .init(status: 304, fields: [.eTag: "\"a\"", .setCookie: "a=b"]) }
    #expect(result.fields[.setCookie] == "a=b")
    #expect(result.body == "body")
    #expect(session.stored().map { $0.fields[.setCookie] } == [nil])
    #expect(try session.request(at: 6) { _ in .init(status: 304, fields: fields) }.fields[.setCookie] == nil)
  }

  @Test func `4.3.3: a full response replaces the one that was validated, or removes it if it isn't stored`() throws {
    var session = try stored([.cacheControl: "max-age=1", .eTag: "\"a\""])
    _ = try session.request(at: 5) { _ in .init(fields: [.cacheControl: "max-age=60", .eTag: "\"b\""], body: "new") }
    #expect(session.stored().count == 1)
    #expect(try session.request(at: 6).body == "new")
    _ = try session.request(.get, "/", [.cacheControl: "no-cache"], at: 7) { _ in
      .init(fields: [.cacheControl: "no-store"])
    }
    #expect(session.stored().isEmpty)
  }

  @Test func `4.1: the origin may choose a response that is stored for another request`() throws {
    let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"a\"", .vary: "Color"]
    var session = try stored(fields, for: [.color: "1"])
    let result = try session.request(.get, "/", [.color: "2"], at: 5) { _ in
      .init(status: 304, fields: [.eTag: "\"a\""])
    }
    #expect(result.forwarded[0].headerFields[.ifNoneMatch] == "\"a\"")
    #expect(result.body == "body")
    for color in ["1", "2"] { #expect(try session.request(.get, "/", [.color: color], at: 6).isHit) }
    #expect(session.stored().count == 1)
    // A weak tag or a content coding could be right for the other request alone.
    for fields in [
      [.cacheControl: "max-age=60", .eTag: "W/\"a\"", .vary: "Color"],
      [.cacheControl: "max-age=60", .eTag: "\"a\"", .vary: "Color", .contentEncoding: "gzip"],
    ] as [HTTPFields] {
      var session = try stored(fields, for: [.color: "1"])
      #expect(try session.request(.get, "/", [.color: "2"], at: 5).forwarded[0].headerFields[.ifNoneMatch] == nil)
    }
  }

  @Test("4.3.5: HEAD is answered by GET, freshens it, or removes it")
  func head() throws {
    let fields: HTTPFields = [.cacheControl: "max-age=1", .eTag: "\"a\"", .contentLength: "4"]
    var session = try stored(fields)
    let hit = try session.request(.head, at: 0.5)
    #expect(hit.isHit)
    #expect(hit.fields[.contentLength] == "4")
    #expect(hit.body.isEmpty)
    for (reply, isKept) in [
      ([.cacheControl: "max-age=60"], true),
      ([.cacheControl: "max-age=60", .eTag: "\"a\"", .contentLength: "4"], true),
      ([.cacheControl: "max-age=60", .eTag: "\"b\""], false),
      ([.cacheControl: "max-age=60", .contentLength: "5"], false),
    ] as [(HTTPFields, Bool)] {
      var session = try stored(fields)
      _ = try session.request(.head, at: 5) { _ in .init(fields: reply) }
      #expect(try session.request(at: 6).isHit == isKept)
    }
    var empty = Session()
    _ = try empty.request(.head) { _ in .init(fields: [.cacheControl: "max-age=60"]) }
    #expect(empty.stored().isEmpty)
    #expect(empty.cache.refusal == .method)
  }

  @Test("4.4: unsafe methods invalidate the URL, and Location and Content-Location of the same origin")
  func invalidation() throws {
    for (method, status, isInvalidated) in [
      (.post, 200, true), (.put, 204, true), (.delete, 302, true), (.named("M-SEARCH"), 200, true), (.post, 404, false),
      (.put, 500, false), (.options, 200, false), (.named("PROPFIND"), 200, false),
    ] as [(HTTPRequest.Method, Int, Bool)] {
      var session = Session()
      for color in ["1", "2"] {
        try session.store([.cacheControl: "max-age=60", .vary: "Color"], for: [.color: color])
      }
      for path in ["/a", "/b", "/c"] { try session.store([.cacheControl: "max-age=60"], path: path) }
      _ = try session.request(method, at: 1) { _ in
        .init(status: status, fields: [.location: "/a", .contentLocation: "https://example.com:443/x/../b"])
      }
      for path in ["/", "/a", "/b"] { #expect(session.stored(path).isEmpty == isInvalidated, "\(method) \(path)") }
      #expect(!session.stored("/c").isEmpty)
    }
    let request = HTTPRequest(method: .post, scheme: "https", authority: "example.com", path: "/")
    let fields: HTTPFields = [.location: "https://example.org/a", .contentLocation: "http://example.com/a"]
    let others = HTTPResponse(status: .ok, headerFields: fields)
    #expect(InvalidatedURLs.urls(others, to: request, at: "https://example.com/") == ["https://example.com/"])
  }
}
#endif
