#if Hummingbird
public import HTTPTypes
public import Hummingbird
import Larder
public import LarderCoordination
import NIOCore

/// A middleware that answers a repeated request with the same `Idempotency-Key` as the first one, without running its handler.
///
/// ```swift
/// let requests = try IdempotencyKeys(bytes, prefix: "requests/", codec: .json(StoredHTTPResponse.self))
/// router.group("payments")
///   .add(middleware: IdempotencyMiddleware(requests) { _, context in try context.user().id })
///   .post(use: pay)
/// ```
///
/// The response is stored, and a repetition gets the same one. A repetition at the same time waits for the first request. The field
/// is the one of draft-ietf-httpapi-idempotency-key-header-07. Its value may lack the quotation marks.
///
/// | Request | Response |
/// | --- | --- |
/// | has no key, and one is required | 400 |
/// | has a key, and no user | 401 |
/// | has a key that belongs to another request | 422 |
/// | has a key whose request was interrupted, with `InterruptionPolicy.refuse` | 409 |
/// | has a key whose request has not ended within `waitLimit` | 409 with `Retry-After` |
///
/// A response with a status of 500 or above is not stored, and neither is an error that a handler throws. The next request with
/// the key then runs the handler again, so a handler that fails like this must have had no effect; see the closure that decides
/// which responses are stored. `Set-Cookie` is not stored either: only the first response has it. If the effect of a request is an
/// entry of the same store, use `StoreTransaction.perform(_:fingerprint:with:isolation:_:)` in the handler instead, so that both
/// are one commit.
public struct IdempotencyMiddleware<Context: RequestContext>: RouterMiddleware {
  /// The number of characters of the longest key that a client may use.
  public static var maximumKeyLength: Int { 255 }

  private let keys: IdempotencyKeys<StoredHTTPResponse>
  private let methods: Set<HTTPRequest.Method>
  private let isRequired: Bool
  private let maximumBodySize: Int
  private let waitLimit: Duration
  private let isStored: @Sendable (Response) -> Bool
  private let user: @Sendable (Request, Context) async throws -> String?

  /// Creates a middleware.
  ///
  /// - Parameters:
  ///   - keys: The keys, which also decide about requests that were interrupted.
  ///   - methods: The methods of the requests whose keys are used. Defaults to `POST` and `PATCH`.
  ///   - isRequired: A Boolean value that indicates whether requests without a key are refused. Defaults to `false`.
  ///   - maximumBodySize: The maximum number of bytes of the body of a request and of a response. Defaults to 1 MiB. A request
  ///     above it gets the status 413.
  ///   - waitLimit: The time for which a repetition waits for the first request. Defaults to 30 seconds.
  ///   - isStored: A closure that returns whether repetitions get a response of the handler. Defaults to one that returns
  ///     `true` for a status below 500. A handler runs again after a response that is not stored, and after an error that it
  ///     throws, so let it return a response, and store that, if it fails after it had an effect.
  ///   - user: A closure that returns the user of a request, so that no user gets the response of another one, or `nil` if it is
  ///     unknown. It must tell apart all users who must not see each other's responses, and return the same text for a user each
  ///     time: not a token, because it changes between two attempts.
  public init(
    _ keys: IdempotencyKeys<StoredHTTPResponse>, methods: Set<HTTPRequest.Method> = [.post, .patch],
    isRequired: Bool = false, maximumBodySize: Int = 1_048_576, waitLimit: Duration = .seconds(30),
    storing isStored: @escaping @Sendable (Response) -> Bool = { $0.status.code < 500 },
    user: @escaping @Sendable (Request, Context) async throws -> String?
  ) {
    self.keys = keys
    self.methods = methods
    self.isRequired = isRequired
    self.maximumBodySize = maximumBodySize
    self.waitLimit = waitLimit
    self.isStored = isStored
    self.user = user
  }

  /// Handles a request, or returns the stored response of an earlier one with the same key.
  ///
  /// - Throws: `HTTPError` with the status 400, 401, 409, 413 or 422; the errors of the store, of `user` and of the next handler.
  @concurrent public func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard methods.contains(request.method) else { return try await next(request, context) }
    guard let field = idempotencyKey.flatMap({ request.headers[$0] }) else {
      guard !isRequired else {
        throw HTTPError(.badRequest, message: "the request needs the field Idempotency-Key with a value of its own")
      }
      return try await next(request, context)
    }
    guard let user = try await user(request, context) else {
      throw HTTPError(.unauthorized, message: "a request with an Idempotency-Key needs a user")
    }
    let key = try recordKey(field, of: user)
    var request = request
    let body: ByteBuffer
    do {
      body = try await request.collectBody(upTo: maximumBodySize)
    } catch is NIOTooManyBytesError {
      throw HTTPError(
        .contentTooLarge,
        message: "the body of a request with an idempotency key must have at most \(maximumBodySize) bytes")
    }
    // The digest of the body, so that the body is not copied.
    let fingerprint =
      Array("\(request.method) \(request.uri.string)\n".utf8)
      + body.withUnsafeReadableBytes { KeyDigest.digest(of: $0) }
    return try await perform(key, fingerprint) { [request] in try await next(request, context) }
  }

  /// Runs the handler once.
  @concurrent private func perform(
    _ key: StoreKey, _ fingerprint: [UInt8], _ handler: @concurrent () async throws -> Response
  ) async throws -> Response {
    var bodyError: (any Error)?
    var cookies: [String] = []
    do {
      let stored = try await keys.perform(key, fingerprint: fingerprint, waitLimit: waitLimit) {
        let response: Response
        do {
          response = try await handler()
        } catch let error where !(error is CancellationError) {
          // An error of the handler may have the code of one of this middleware.
          throw HandlerFailure(error: error)
        }
        cookies = response.headers[values: .setCookie]
        guard isStored(response) else { throw UnstoredResponse(response: response) }
        do {
          return try await StoredHTTPResponse(response, upTo: maximumBodySize)
        } catch let error where !(error is CancellationError) {
          // The handler had its effect, so repetitions must not run it again.
          bodyError = error
          return StoredHTTPResponse(status: HTTPResponse.Status.internalServerError.code)
        }
      }
      if let bodyError { throw bodyError }
      var response = stored.response
      for cookie in cookies { response.headers.append(HTTPField(name: .setCookie, value: cookie)) }
      return response
    } catch let unstored as UnstoredResponse {
      return unstored.response
    } catch let failure as HandlerFailure {
      throw failure.error
    } catch StoreError.Code.otherRequest {
      throw HTTPError(
        .unprocessableContent, message: "the Idempotency-Key belongs to another request; use a new one")
    } catch StoreError.Code.stillRunning {
      throw HTTPError(
        .conflict, headers: [.retryAfter: "1"],
        message: "a request with the Idempotency-Key is still running; repeat this one later")
    } catch StoreError.Code.interrupted {
      throw HTTPError(
        .conflict,
        message:
          "an earlier request with the Idempotency-Key was interrupted, so it is unknown whether it had its effect")
    }
  }

  /// Returns the key of the record of a user's request.
  ///
  /// It is a digest, because users and clients choose its parts. A field has no NUL, so the parts cannot be confused.
  ///
  /// - Throws: `HTTPError` with the status 400.
  private func recordKey(_ field: String, of user: String) throws -> StoreKey {
    var key = field[...]
    if key.count >= 2, key.first == "\"", key.last == "\"" { key = key.dropFirst().dropLast() }
    guard (1...Self.maximumKeyLength).contains(key.utf8.count) else {
      throw HTTPError(
        .badRequest,
        message: "the Idempotency-Key must have 1 to \(Self.maximumKeyLength) bytes, not \(key.utf8.count)")
    }
    let bytes = Array(user.utf8) + [0] + key.utf8
    return StoreKey(bytes: bytes.withUnsafeBytes { KeyDigest.digest(of: $0) })
  }
}

/// The response of a handler that is not stored.
private struct UnstoredResponse: Error {
  let response: Response
}

/// The error of a handler.
private struct HandlerFailure: Error {
  let error: any Error
}

/// The field with the key that a client chose for a request.
private let idempotencyKey = HTTPField.Name("Idempotency-Key")
#endif
