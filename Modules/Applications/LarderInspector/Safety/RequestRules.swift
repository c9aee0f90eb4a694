#if Inspector
/// The rules by which the inspector refuses requests that another page, another name or another program may have caused.
struct RequestRules: Sendable, Hashable {
  /// The names under which a browser on the same machine reaches it.
  static let loopbackNames: Set<String> = ["localhost", "127.0.0.1", "[::1]"]

  private let hosts: Set<String>

  /// Creates the rules.
  ///
  /// - Parameter hosts: The names of the server beside the loopback names, without a port.
  init(hosts: [String]) {
    self.hosts = Self.loopbackNames.union(hosts.map { $0.lowercased() })
  }

  /// The parts of a request that the rules are about.
  struct Head: Sendable, Hashable {
    /// The method, such as `GET`.
    var method: String
    /// The field `Host`.
    var host: String?
    /// The field `Origin`.
    var origin: String?
    /// The field `Sec-Fetch-Site`.
    var site: String?
    /// The field `Sec-Fetch-Mode`.
    var mode: String?
    /// The field `Sec-Fetch-Dest`.
    var destination: String?
  }

  /// A reason to refuse a request.
  enum Refusal: Sendable, Hashable, CaseIterable {
    /// The method is none of `GET`, `HEAD` and `POST`.
    case method
    /// The name of the server is not one of those that are allowed, as if a foreign name led to this machine.
    case host
    /// The request comes from another origin, or does not say from which one.
    case origin
  }

  /// Returns the reason to refuse a request, or `nil` for an allowed one.
  ///
  /// A change must come from a page of the same origin. A browser names the origin in at least one of `Origin` and
  /// `Sec-Fetch-Site`, and each that is there must fit. A page of another origin may link to the inspector, but load nothing
  /// of it.
  func refusal(of head: Head) -> Refusal? {
    guard ["GET", "HEAD", "POST"].contains(head.method) else { return .method }
    guard let host = head.host?.lowercased(), let name = Self.name(ofHost: host), hosts.contains(name) else {
      return .host
    }
    if head.method == "POST" {
      guard head.origin != nil || head.site != nil else { return .origin }
      if let site = head.site, site != "same-origin" { return .origin }
      if let origin = head.origin?.lowercased(), !["http://\(host)", "https://\(host)"].contains(origin) {
        return .origin
      }
      return nil
    }
    let isLink = head.mode == "navigate" && head.destination == "document"
    if let site = head.site, !["same-origin", "none"].contains(site), !isLink { return .origin }
    return nil
  }

  /// Returns the name in a `Host` field, without the port.
  private static func name(ofHost host: String) -> String? {
    let end = host.hasPrefix("[") ? host.firstIndex(of: "]").map(host.index(after:)) : host.firstIndex(of: ":")
    let name = host[..<(end ?? host.endIndex)]
    let rest = host[name.endIndex...]
    guard rest.isEmpty || rest.first == ":" && rest.dropFirst().allSatisfy({ ("0"..."9").contains($0) }) else {
      return nil
    }
    return String(name)
  }
}
#endif
