#if HTTPCache
import HTTPCachingRules
import HTTPTypes

/// The target of a request, from which both the key of its responses and the forwarded request are made.
///
/// Everything that says which resource a request is for is in the key as it is forwarded, except for what an
/// ``HTTPCacheQueryKey`` ignores. Otherwise, one client could choose the response that is stored for others.
struct RequestTarget: Sendable {
  /// The request, with its scheme, authority and path as they are in the key, and at most one field `Host`, which names
  /// another server than the authority.
  let request: HTTPRequest

  /// The URL that is the key of the responses.
  let url: String

  private static let hostName = HTTPField.Name("Host")

  /// Reads the target of a request.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - queryKey: The way the query counts in the key.
  /// - Throws: ``HTTPCacheError`` with `invalidURL`.
  init(_ request: HTTPRequest, _ queryKey: HTTPCacheQueryKey) throws(HTTPCacheError) {
    let url: RequestURL
    do {
      url = try RequestURL(of: request)
    } catch {
      throw HTTPCacheError(error)
    }
    var request = request
    if request.scheme != url.scheme { request.scheme = url.scheme }
    if request.authority != url.authority { request.authority = url.authority }
    if request.path != url.target { request.path = url.target }
    if let name = Self.hostName, request.headerFields.contains(name) {
      let host = try Self.host(request.headerFields[values: name], of: request)
      request.headerFields[name] = host == url.authority ? nil : host
    }
    self.request = request
    self.url = queryKey.key(of: url.text)
  }

  /// Returns the server that a field `Host` names, as ``RequestURL`` writes it.
  private static func host(_ values: [String], of request: HTTPRequest) throws(HTTPCacheError) -> String {
    // Two servers could choose two of them (RFC 9112, section 3.2).
    guard values.count == 1 else { throw HTTPCacheError(.invalidURL, "the request has several fields Host; send one") }
    var named = request
    (named.authority, named.path) = (values[0], "/")
    do {
      return try RequestURL(of: named).authority
    } catch {
      throw HTTPCacheError(.invalidURL, "the field Host names no server; send a host name and perhaps a port")
    }
  }

  /// Returns the partition of the request in a partition of the user's.
  ///
  /// It has the field `Host` if there is one, because it can change the response as the authority does.
  func partition(in partition: [UInt8]) -> [UInt8] {
    let label = "Host: "
    let host = Self.hostName.flatMap { request.headerFields[$0] }
    // An empty host keeps a partition of the user's apart that looks like one with a host.
    guard host != nil || partition.starts(with: label.utf8) else { return partition }
    return Array("\(label)\(host ?? "")\n".utf8) + partition
  }
}
#endif
