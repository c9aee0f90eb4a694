#if Inspector
import Foundation
import HTTPTypes
public import Hummingbird
import Larder
import LarderHTTPCache
import Logging
import NIOCore

/// Pages for a browser that show stores and queues, and change them if you allow it.
///
/// Mount the pages in a Hummingbird server behind your own authentication:
///
/// ```swift
/// let inspector = Inspector([InspectedStore("users", users, codec: .cbor())], hosts: ["admin.example.com"])
/// inspector.addRoutes(to: router.group("admin/stores").add(middleware: administrators))
/// ```
///
/// Without a middleware that authenticates, or an ``InspectorSession``, every user of a browser that reaches the server reads
/// the stores. The guide <doc:InspectingStores> describes the rules that protect them.
public struct Inspector: Sendable {
  /// The largest body of a request, in bytes.
  ///
  /// A form can contain each byte of a value three times.
  private static let maximumBodySize = 8 << 20

  private let pages: InspectorPages
  private let rules: RequestRules

  /// Creates an inspector.
  ///
  /// It observes the stores that report changes, as long as it or one of its routes exists.
  ///
  /// - Parameters:
  ///   - stores: The stores, in the order in which they are listed.
  ///   - allowsChanges: A Boolean value that indicates whether the pages can change the stores that are open for writing.
  ///     Defaults to `false`.
  ///   - hosts: The names of the server in the field `Host`, without a port. A request with another name is refused, because
  ///     a foreign page may have let it lead here. Defaults to none; loopback names are always allowed.
  public init(_ stores: [InspectedStore], allowsChanges: Bool = false, hosts: [String] = []) {
    pages = InspectorPages(
      stores: stores, allowsChanges: allowsChanges, monitors: stores.map { ChangeMonitor($0.contents) })
    rules = RequestRules(hosts: hosts)
  }

  /// Adds the routes of the pages to a router or a group of one.
  ///
  /// - Parameters:
  ///   - parent: The router, or a group with a path and your authentication.
  ///   - session: A session without which nothing is read. Defaults to `nil`, for your own authentication.
  public func addRoutes<Context: RequestContext>(
    to parent: some RouterMethods<Context>, session: InspectorSession? = nil
  ) {
    var group = parent.group().add(middleware: SafetyMiddleware<Context>(rules: rules))
    if let session { group = group.add(middleware: SessionMiddleware<Context>(session: session)) }
    let isReadOnly = pages.isReadOnly
    func page(_ path: RouterPath, _ make: @escaping @Sendable (FormFields) async throws -> Page) {
      group.get(path) { request, _ in
        await Self.response(isReadOnly: isReadOnly) {
          try await make(FormFields(request.uri.query)).response(isReadOnly: isReadOnly)
        }
      }
    }
    group.get("") { [pages] request, _ in
      // Addresses are relative, so that the pages need not know where they are mounted.
      let path = request.uri.path
      guard path.hasSuffix("/") else {
        let last = path.split(separator: "/").last.map { "\($0)/" } ?? "/"
        return Response(status: .temporaryRedirect, headers: [.location: "./" + last])
      }
      return pages.overview().response(isReadOnly: isReadOnly)
    }
    group.get("style.css") { _, _ in Response(asset: Assets.stylesheet, type: "text/css; charset=utf-8") }
    group.get("script.js") { _, _ in Response(asset: Assets.script, type: "text/javascript; charset=utf-8") }
    group.get("keys") { [pages] request, _ in
      await Self.response(isReadOnly: isReadOnly) {
        let fields = FormFields(request.uri.query)
        if let found = try pages.foundEntry(fields) { return Response(status: .seeOther, headers: [.location: found]) }
        return try await pages.keys(fields).response(isReadOnly: isReadOnly)
      }
    }
    page("entry", pages.entry)
    page("edit", pages.edit)
    page("damage", pages.damage)
    page("salvage", pages.salvage)
    page("queue", pages.queue)
    page("dead", pages.deadLetters)
    page("leased", pages.leasedItems)
    page("groups", pages.groups)
    page("schedules", pages.schedules)
    page("enqueue", pages.enqueueForm)
    page("requeue", pages.requeueForm)
    page("search", pages.search)
    page("http", pages.httpCache)
    page("response", pages.httpResponse)
    page("measurements", pages.measurements)
    func part(_ path: RouterPath, _ make: @escaping @Sendable (FormFields) async throws -> Response) {
      group.get(path) { request, _ in
        await Self.response(isReadOnly: isReadOnly) { try await make(FormFields(request.uri.query)) }
      }
    }
    part("raw", pages.raw)
    part("body", pages.httpBody)
    part("usage", pages.usage)
    part("counts", pages.counts)
    part("state", pages.state)
    // The session answers it. With a cookie, there is nothing to log in to.
    group.post("login") { _, _ in Response(status: .seeOther, headers: [.location: "./"]) }
    group.post("change") { [pages] request, context in
      await Self.response(isReadOnly: isReadOnly) {
        let body = try await request.body.collect(upTo: Self.maximumBodySize)
        return try await pages.response(toChange: FormFields(String(buffer: body)), logger: context.logger)
      }
    }
  }

  /// Returns a response, or the page of the error that prevents it.
  private static func response(isReadOnly: Bool, _ make: () async throws -> Response) async -> Response {
    do {
      return try await make()
    } catch {
      return PageFailure.page(of: error).response(isReadOnly: isReadOnly)
    }
  }
}

extension InspectorPages {
  fileprivate func response(toChange fields: FormFields, logger: Logger) async throws -> Response {
    let change = try InspectorChange(fields)
    guard fields["confirmed"] == "yes" else {
      return try await confirmation(of: change, fields).response(isReadOnly: isReadOnly)
    }
    let metadata: Logger.Metadata = ["store": "\(try store(fields).store.name)", "change": "\(change.kind)"]
    do {
      let result = try await make(change, fields)
      logger.notice("inspector: change made", metadata: metadata)
      switch result {
      case .done(let address): return Response(status: .seeOther, headers: [.location: address])
      case .partly(let page): return page.response(isReadOnly: isReadOnly)
      }
    } catch {
      logger.notice("inspector: change failed", metadata: metadata)
      throw error
    }
  }

  /// The counts of a store as JSON, which can take long to count.
  fileprivate func counts(_ fields: FormFields) async throws -> Response {
    let statistics = try await store(fields).store.contents.statistics()
    let details = statistics.details.map { "[\(JSONText(string: $0.name)),\(JSONText(string: Readable.detail($0)))]" }
    return Response(
      json: """
        {"entries":"\(Readable.count(statistics.entryCount))",\
        "size":"\(statistics.bytesOnDisk.map { Readable.size($0) } ?? "no files")","details":[\(details.joined(separator: ","))]}
        """)
  }

  /// The number of changes so far, the counts of a queue and the measurements as JSON, which the script asks for again and again.
  fileprivate func state(_ fields: FormFields) async throws -> Response {
    let (number, store) = try store(fields)
    var members: [String] = []
    if let monitor = monitors[number] { members.append("\"changes\":\(monitor.changes)") }
    if let queue = store.contents.queue {
      let statistics = try await queue.state().statistics
      let counts = statistics.counts
      members.append(
        """
        "waiting":\(counts.waiting),"delayed":\(counts.delayed),"leased":\(counts.leased),"dead":\(counts.dead),\
        "oldest":"\(statistics.oldestAge.map(Readable.duration) ?? "–")"
        """)
    }
    if let cache = store.httpCache?.cache {
      let statistics = cache.statistics()
      members += Measurements.members(hits: statistics.hitCount, misses: statistics.requestCount - statistics.hitCount)
    } else if let measurements = store.measurements {
      members += try measurements.members()
    }
    return Response(json: "{\(members.joined(separator: ","))}")
  }
}

extension Readable {
  /// Returns a figure, as a size if its name says so.
  fileprivate static func detail(_ detail: StoreStatistics.Detail) -> String {
    detail.name.hasSuffix("Bytes") ? size(detail.value) : count(detail.value)
  }
}

extension Response {
  fileprivate init(asset: String, type: String) {
    self.init(status: .ok, headers: [.contentType: type], body: .init(byteBuffer: .init(string: asset)))
  }

  init(json: String) {
    self.init(status: .ok, headers: [.contentType: "application/json"], body: .init(byteBuffer: .init(string: json)))
  }

  /// Creates a response with stored bytes, which a browser shows only as an image of a kind that cannot contain a program.
  init(stored bytes: [UInt8], name: String) {
    let image = InspectedValue.Image(bytes)
    var headers: HTTPFields = [.contentType: image?.mediaType ?? "application/octet-stream"]
    headers[text: "Content-Security-Policy"] = "sandbox; default-src 'none'; frame-ancestors 'none'"
    headers[text: "Content-Disposition"] =
      "\(image == nil ? "attachment" : "inline"); filename=\"\(name).\(image?.rawValue ?? "bin")\""
    self.init(status: .ok, headers: headers, body: .init(byteBuffer: .init(bytes: bytes)))
  }
}
#endif
