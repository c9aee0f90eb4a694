#if HTTPCache
import HTTPTypes

extension HTTPCacheRules {
  /// Decides on a 304 (RFC 9111, sections 4.3.3 and 4.3.4).
  func decideNotModified(_ arrival: Arrival) -> ResponseDecision {
    let exchange = arrival.exchange
    var validated: [Int] = []
    if case .validate(let positions) = exchange.purpose { validated = positions }
    let pool = arrival.selection.matching + validated.filter { !arrival.selection.matching.contains($0) }
    let identified = identify(arrival, pool: pool, validated: validated)
    var decision = arrival.passingOn()
    decision.refusal = identified.isEmpty ? .notNeeded : nil
    var updated: [Int: StoredResponse] = [:]
    for position in identified {
      updated[position] = freshen(position, by: arrival, in: &decision)
    }
    guard !validated.isEmpty else { return decision }

    guard let confirmed = identified.first ?? confirmed(arrival, validated) else {
      let isForClient = arrival.candidate.facts.validator.entityTag.flatMap { tag in
        arrival.request.ifNoneMatch.map { $0.tags.contains { $0.weaklyEquals(tag) } }
      }
      return isForClient == true ? decision : again(arrival)
    }
    let response = updated[confirmed] ?? exchange.stored[confirmed]
    let isHead = exchange.request.method == .head
    guard case .answer(let answer) = form(of: response, for: arrival.request, isHead: isHead) else {
      return again(arrival)
    }
    var status = arrival.status
    status.isValidated = true
    let state = Freshness(response, at: arrival.responseTime, self)
    let reuse = reuse(response, at: confirmed, as: answer, state, status)
    decision.delivery = .stored(reuse)
    decision.status = reuse.status
    return decision
  }

  /// Returns the positions of the stored responses that a 304 identifies for update, the one to reuse first.
  private func identify(_ arrival: Arrival, pool: [Int], validated: [Int]) -> [Int] {
    let stored = arrival.exchange.stored
    let validator = arrival.candidate.facts.validator
    // A 304 without a validator can only be about what was asked.
    guard !validator.isEmpty else { return confirmed(arrival, validated).map { [$0] } ?? [] }
    // A response that is stored for other selecting fields was offered by its strong tag, and is identified only by it.
    let candidates = pool.filter {
      arrival.selection.matching.contains($0) || validator.entityTag.map { !$0.isWeak } ?? false
    }
    if validator.isStrong {
      let same = candidates.filter { Self.strongly(validator, stored[$0].facts.validator) }
      let (first, rest) = (same.filter(validated.contains), same.filter { !validated.contains($0) })
      return first + rest
    }
    return candidates.first { Self.weakly(validator, stored[$0].facts.validator) }.map { [$0] } ?? []
  }

  /// Returns the position of the stored response that a 304 confirms although it doesn't identify it for update: the only
  /// one that was asked about, or the one whose tag is equal by the weak comparison.
  private func confirmed(_ arrival: Arrival, _ validated: [Int]) -> Int? {
    let stored = arrival.exchange.stored
    let matching = validated.filter { arrival.selection.matching.contains($0) }
    if let tag = arrival.candidate.facts.validator.entityTag,
      let same = matching.first(where: { stored[$0].facts.validator.entityTag?.weaklyEquals(tag) ?? false })
    {
      return same
    }
    let asked = RequestFacts(arrival.exchange.forwarded.headerFields, now: 0).ifNoneMatch?.tags ?? []
    guard let first = matching.first, asked.count <= 1,
      asked.isEmpty || stored[first].facts.validator.entityTag?.weaklyEquals(asked[0]) == true
    else { return nil }
    return first
  }

  private static func strongly(_ one: Validator, _ other: Validator) -> Bool {
    if let tag = one.entityTag, let otherTag = other.entityTag { return tag.stronglyEquals(otherTag) }
    return one.lastModified != nil && one.lastModified == other.lastModified
  }

  private static func weakly(_ one: Validator, _ other: Validator) -> Bool {
    if let tag = one.entityTag, let otherTag = other.entityTag { return tag.weaklyEquals(otherTag) }
    return one.lastModified != nil && one.lastModified == other.lastModified
  }

  /// Decides on a response to `HEAD` (RFC 9111, section 4.3.5).
  func decideHead(_ arrival: Arrival) -> ResponseDecision {
    var decision = arrival.passingOn()
    decision.refusal = .method
    guard arrival.response.status.code == 200 else { return decision }
    let facts = arrival.candidate.facts
    for position in arrival.selection.matching {
      let stored = arrival.exchange.stored[position]
      let validator = stored.facts.validator
      let agrees =
        stored.status == 200 && (facts.validator.entityTag == nil || facts.validator.entityTag == validator.entityTag)
        && (facts.validator.lastModified == nil || facts.validator.lastModified == validator.lastModified)
        && (facts.contentLength == nil || facts.contentLength == stored.length) && !facts.hasInvalidLength
      if agrees {
        _ = freshen(position, by: arrival, in: &decision)
      } else {
        decision.removed.append(position)
      }
    }
    return decision
  }

  /// Freshens a stored response in a decision, or removes it.
  ///
  /// - Returns: The response, or `nil` if it can't be stored.
  private func freshen(
    _ position: Int, by arrival: Arrival, in decision: inout ResponseDecision
  ) -> StoredResponse? {
    guard let response = freshened(arrival.exchange.stored[position], by: arrival) else {
      decision.removed.append(position)
      return nil
    }
    switch use(of: response, arrival) {
    case .store: decision.freshened.append((position, response))
    case .remove: decision.removed.append(position)
    case .ignore: break
    }
    return response
  }

  /// Returns a stored response with the head that a later response gives it (RFC 9111, section 3.2), or `nil` if that
  /// can't be stored.
  func freshened(_ stored: StoredResponse, by arrival: Arrival) -> StoredResponse? {
    guard let update = StorableFields.select(arrival.response.headerFields, arrival.directives, self) else {
      return nil
    }
    var response = stored
    response.requestTime = arrival.requestTime
    response.responseTime = arrival.responseTime
    response.fields = StorableFields.updating(stored.fields, with: update).dated(arrival.responseTime)
    // The update may name further fields that aren't stored.
    guard let fields = StorableFields.select(response.fields, directives(of: response.fields, response.facts), self)
    else { return nil }
    response.fields = fields
    var values = RequestValues(arrival.exchange.request.headerFields)
    let own = SelectingFields(names: response.facts.vary ?? [], in: &values)
    if response.facts.vary != stored.facts.vary {
      response.selecting = own
    } else if !response.selecting.matches(&values) {
      response.selecting.add(own)
    }
    return response
  }

  /// The use of the new head of a stored response.
  enum FreshenedUse {
    /// It is stored.
    case store
    /// The stored response is removed, because the new head forbids storing it.
    case remove
    /// Nothing, because the new head was for the client of this request alone.
    case ignore
  }

  /// Decides on the use of the new head of a stored response.
  func use(of response: StoredResponse, _ arrival: Arrival) -> FreshenedUse {
    let directives = directives(of: response.fields, response.facts)
    if let refusal = refusal(for: response, request: nil, directives) {
      // The cookie is for this client. The stored response doesn't have it.
      return refusal == .setCookie ? .ignore : .remove
    }
    // The response was stored for all users, and is no longer public for this one.
    let scope = arrival.exchange.scope
    if scope.hasIdentity, response.partition == scope.common, !directives.control.isPublic { return .remove }
    return refusal(for: response, request: arrival.request, directives) == nil ? .store : .ignore
  }
}
#endif
