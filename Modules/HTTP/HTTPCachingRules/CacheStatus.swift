#if HTTPCache
public import HTTPTypes
import RawStructuredFieldValues

/// The way a cache handled a request, as `Cache-Status` of RFC 9211 says it.
///
/// ```swift
/// let status = CacheStatus(forward: .stale)
/// response.headerFields[.init("Cache-Status")!] = status.fieldValue(name: "ExampleCache")
/// ```
public struct CacheStatus: Sendable, Hashable {
  /// The reason why a request was forwarded.
  public enum ForwardReason: String, Sendable, Hashable, CaseIterable {
    /// The cache was not to handle the request.
    case bypass
    /// The method of the request requires it.
    case method
    /// No response was stored for the URL.
    case uriMiss = "uri-miss"
    /// Responses were stored for the URL, but none for the selecting fields of the request.
    case varyMiss = "vary-miss"
    /// No stored response could be used, for a reason that is not known.
    case miss
    /// The request demanded it by a directive or a policy.
    case request
    /// The stored response was stale.
    case stale
    /// A part of the response was missing.
    case partial
  }

  /// A Boolean value that indicates whether a stored response answered the request without being forwarded.
  public var isHit: Bool = false

  /// The reason why the request was forwarded, or `nil` if it was not.
  public var forward: ForwardReason?

  /// The status code of the origin's response if the request was forwarded.
  public var forwardStatus: Int?

  /// The remaining freshness of the response in seconds, negative if it is stale; `nil` if it isn't known.
  public var timeToLive: Int?

  /// A Boolean value that indicates whether the response is being stored.
  public var isStored: Bool = false

  /// A Boolean value that indicates whether the request waited for the response to another one.
  public var isCollapsed: Bool = false

  /// The reason why the response isn't stored, or another detail for people; a token of the cache's own.
  public var detail: String?

  /// Creates a status.
  ///
  /// - Parameters:
  ///   - isHit: A Boolean value that indicates whether a stored response answered the request without being forwarded.
  ///     Defaults to `false`.
  ///   - forward: The reason why the request was forwarded. Defaults to `nil`, for a request that was not.
  public init(isHit: Bool = false, forward: ForwardReason? = nil) {
    self.isHit = isHit
    self.forward = forward
  }

  /// A Boolean value that indicates whether the answer is a stored response that was stale and wasn't validated.
  public var isStale: Bool = false

  /// A Boolean value that indicates whether the origin confirmed the stored response that is the answer.
  public var isValidated: Bool = false

  /// A Boolean value that indicates whether the body of the answer is that of a stored response: a hit, a response that the
  /// origin confirmed, or a stale one because the origin failed.
  public var isBodyFromStore: Bool { isHit || isValidated || isStale }
}

extension CacheStatus {
  fileprivate static let fieldName = HTTPField.Name("Cache-Status")

  /// Reads the last member of a field `Cache-Status`, which belongs to the cache nearest to the client.
  ///
  /// - Parameter fieldValue: The value of the field.
  /// - Returns: The status, or `nil` if the value has no member or is no structured field.
  public init?(fieldValue: String) {
    var parser = StructuredFieldValueParser(Array(fieldValue.utf8))
    // Anyone may have written the field, so a value that cannot be parsed is no error.
    guard case .item(let item) = (try? parser.parseListFieldValue())?.last else { return nil }
    for (key, value) in item.rfc9651Parameters {
      switch (key, value) {
      case ("hit", .bool(let isHit)): self.isHit = isHit
      case ("fwd", .token(let reason)): forward = ForwardReason(rawValue: reason)
      case ("fwd-status", .integer(let code)): forwardStatus = Int(code)
      case ("ttl", .integer(let seconds)): timeToLive = Int(seconds)
      case ("stored", .bool(let isStored)): self.isStored = isStored
      case ("collapsed", .bool(let isCollapsed)): self.isCollapsed = isCollapsed
      case ("detail", .token(let detail)), ("detail", .string(let detail)): self.detail = detail
      default: break
      }
    }
    // Only a stored response has a time to live.
    isValidated = forwardStatus == 304 && timeToLive != nil
    isStale = !isValidated && timeToLive ?? 0 < 0
  }

  /// Returns the value of `Cache-Status` for a cache with a name.
  ///
  /// Tokens, integers and flags are written as they are (RFC 9651, section 4.1). A general serializer takes several times
  /// as long.
  ///
  /// - Parameter name: The name of the cache, a token.
  /// - Returns: The value, such as `Larder;hit;ttl=59`.
  public func fieldValue(name: String) -> String {
    var value = name
    if isHit { value += ";hit" }
    if let forward { value += ";fwd=\(forward.rawValue)" }
    if let forwardStatus { value += ";fwd-status=\(forwardStatus)" }
    if let timeToLive { value += ";ttl=\(timeToLive)" }
    if isStored { value += ";stored" }
    if isCollapsed { value += ";collapsed" }
    if let detail { value += ";detail=\(detail)" }
    return value
  }
}

extension HTTPResponse {
  /// Adds `Cache-Status` as the last member of the field, for the cache nearest to the client.
  ///
  /// - Parameters:
  ///   - status: The status.
  ///   - name: The name of the cache, a token, or `nil` to add nothing.
  public mutating func add(_ status: CacheStatus, name: String?) {
    guard let name, let field = CacheStatus.fieldName else { return }
    headerFields.append(HTTPField(name: field, value: status.fieldValue(name: name)))
  }
}
#endif
