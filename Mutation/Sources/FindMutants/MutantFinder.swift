import SwiftSyntax

/// A visitor that finds the places of mutants.
///
/// Comparisons are moved by one or turned round, `&&` and `||` exchanged, `+` and `-` too, conditions negated, `+ 1` and `- 1`
/// left out, `min` and `max` exchanged, Booleans and error codes replaced, optional results made `nil`, and statements dropped.
final class MutantFinder: SyntaxVisitor {
  private(set) var found: [Mutant] = []
  private let file: String
  private let lines: [Substring]
  private let lineStarts: [Int]

  init(file: String, text: String) {
    self.file = file
    lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    var starts = [0]
    for line in lines { starts.append(starts[starts.count - 1] + line.utf8.count + 1) }
    lineStarts = starts
    super.init(viewMode: .sourceAccurate)
  }

  private static let replacements: [String: [String]] = [
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"],
  ]

  // Calls that end the program or begin a superclass.
  private static let keptCalls: Set = [
    "precondition", "preconditionFailure", "assert", "assertionFailure", "fatalError", "super.init", "self.init",
  ]

  // MARK: - Places without mutants

  override func visit(_ node: AttributeSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: MacroExpansionExprSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  override func visit(_ node: ExpressionPatternSyntax) -> SyntaxVisitorContinueKind { .skipChildren }
  // A public default argument cannot call the internal function that chooses.
  override func visit(_ node: FunctionParameterSyntax) -> SyntaxVisitorContinueKind { .skipChildren }

  override func visit(_ node: IfConfigClauseSyntax) -> SyntaxVisitorContinueKind {
    if let elements = node.elements { walk(elements) }
    return .skipChildren
  }

  override func visit(_ node: FunctionDeclSyntax) -> SyntaxVisitorContinueKind {
    let isInlinable = node.attributes.contains { $0.trimmedDescription.hasPrefix("@inlinable") }
    return isInlinable ? .skipChildren : .visitChildren
  }

  // MARK: - Places of mutants

  override func visit(_ node: CodeBlockItemSyntax) -> SyntaxVisitorContinueKind {
    if case .expr(let expression) = node.item, !isResult(node), canBeDropped(expression, in: node) {
      add(expression, becomes: "nothing", prefix: "if !", infix: " { ", suffix: " }")
    }
    return .visitChildren
  }

  override func visit(_ node: ConditionElementSyntax) -> SyntaxVisitorContinueKind {
    if case .expression(let condition) = node.condition { negate(condition) }
    return .visitChildren
  }

  override func visit(_ node: TernaryExprSyntax) -> SyntaxVisitorContinueKind {
    negate(node.condition)
    return .visitChildren
  }

  override func visit(_ node: InfixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
    guard let sign = node.operator.as(BinaryOperatorExprSyntax.self)?.operator.text else { return .visitChildren }
    for other in MutantFinder.replacements[sign] ?? [] where !isText(node.leftOperand) && !isText(node.rightOperand) {
      replace(node, by: "\(node.leftOperand.trimmedDescription) \(other) \(node.rightOperand.trimmedDescription)")
    }
    if ["+", "-"].contains(sign), let one = node.rightOperand.as(IntegerLiteralExprSyntax.self), one.literal.text == "1"
    {
      replace(one, by: "0", showsLine: true)
    }
    return .visitChildren
  }

  override func visit(_ node: BooleanLiteralExprSyntax) -> SyntaxVisitorContinueKind {
    // The condition of an endless loop would be negated twice.
    guard node.parent?.is(ConditionElementSyntax.self) != true else { return .visitChildren }
    add(node, becomes: "the opposite, in \(line(of: node))", prefix: "(", infix: " != ", suffix: ")")
    return .visitChildren
  }

  override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
    let called = node.calledExpression.trimmedDescription
    if let other = ["min": "max", "max": "min"][called], node.arguments.count == 2 {
      replace(node, by: "\(other)(\(node.arguments.trimmedDescription))")
    }
    if called == "StoreError", let code = node.arguments.first?.expression.as(MemberAccessExprSyntax.self),
      code.base == nil
    {
      replace(code, by: code.trimmedDescription == ".unsupported" ? ".conflict" : ".unsupported")
    }
    return .visitChildren
  }

  override func visit(_ node: ReturnStmtSyntax) -> SyntaxVisitorContinueKind {
    if let result = node.expression, !result.is(NilLiteralExprSyntax.self), returnsOptional(node) {
      add(result, becomes: "nil, in \(line(of: result))", prefix: "(", infix: " ? nil : (", suffix: "))")
    }
    return .visitChildren
  }

  // MARK: - Conditions

  private func negate(_ condition: ExprSyntax) {
    // An equality is turned round already.
    let sign = condition.as(InfixOperatorExprSyntax.self)?.operator.trimmedDescription
    guard condition.trimmedDescription != "true", sign != "==", sign != "!=" else { return }
    add(condition, becomes: "!(\(oneLine(condition)))", prefix: "(", infix: " != (", suffix: "))")
  }

  private func isText(_ operand: ExprSyntax) -> Bool {
    operand.is(StringLiteralExprSyntax.self) || operand.is(ArrayExprSyntax.self)
  }

  /// Returns whether a statement is the only one of a function or a closure with a result, and so the result.
  private func isResult(_ item: CodeBlockItemSyntax) -> Bool {
    guard let list = item.parent?.as(CodeBlockItemListSyntax.self), list.count == 1 else { return false }
    if list.parent?.is(AccessorBlockSyntax.self) == true { return true }
    if let closure = list.parent?.as(ClosureExprSyntax.self) { return !isAssignment(item) && !isUnused(closure) }
    guard let owner = list.parent?.is(SwitchCaseSyntax.self) == true ? list.parent?.parent?.parent : list.parent?.parent
    else { return false }
    // A branch of a condition that is an expression.
    if owner.is(SwitchExprSyntax.self) || owner.is(IfExprSyntax.self) {
      var outer = owner
      while let condition = outer.parent?.as(IfExprSyntax.self) { outer = Syntax(condition) }
      guard let statement = outer.parent?.as(ExpressionStmtSyntax.self) else { return !isAssignment(item) }
      return statement.parent?.as(CodeBlockItemSyntax.self).map(isResult) ?? false
    }
    if let function = owner.as(FunctionDeclSyntax.self) { return function.signature.returnClause != nil }
    if let accessor = owner.as(AccessorDeclSyntax.self) { return accessor.accessorSpecifier.text == "get" }
    return false
  }

  private func isAssignment(_ item: CodeBlockItemSyntax) -> Bool {
    guard case .expr(let expression) = item.item else { return false }
    return expression.as(InfixOperatorExprSyntax.self).map(isAssignment) ?? false
  }

  /// Returns whether an operation is an assignment, such as `=` and `+=`, and not a comparison.
  private func isAssignment(_ operation: InfixOperatorExprSyntax) -> Bool {
    let sign = operation.operator.trimmedDescription
    return sign.hasSuffix("=") && MutantFinder.replacements[sign] == nil
  }

  /// Returns whether the call that a closure is passed to is a statement, so that no result is used.
  private func isUnused(_ closure: ClosureExprSyntax) -> Bool {
    var node = closure.parent
    while let current = node {
      if let item = current.as(CodeBlockItemSyntax.self) { return !isResult(item) }
      let isPassage =
        current.is(LabeledExprSyntax.self) || current.is(LabeledExprListSyntax.self)
        || current.is(FunctionCallExprSyntax.self)
        || current.is(TryExprSyntax.self) || current.is(AwaitExprSyntax.self)
      guard isPassage else { return false }
      node = current.parent
    }
    return false
  }

  private func canBeDropped(_ expression: ExprSyntax, in item: CodeBlockItemSyntax) -> Bool {
    if let call = expression.as(TryExprSyntax.self) { return canBeDropped(call.expression, in: item) }
    if let call = expression.as(AwaitExprSyntax.self) { return canBeDropped(call.expression, in: item) }
    if let call = expression.as(FunctionCallExprSyntax.self) {
      let called = call.calledExpression.trimmedDescription
      return !called.hasPrefix(".") && !MutantFinder.keptCalls.contains(called)
    }
    guard let infix = expression.as(InfixOperatorExprSyntax.self) else { return false }
    // An initializer must give each property its first value.
    if infix.operator.is(AssignmentExprSyntax.self) {
      return item.parent?.parent?.parent?.is(InitializerDeclSyntax.self) != true
    }
    return isAssignment(infix)
  }

  private func returnsOptional(_ node: ReturnStmtSyntax) -> Bool {
    var parent = node.parent
    while let current = parent {
      if current.is(ClosureExprSyntax.self) { return false }
      if let function = current.as(FunctionDeclSyntax.self) {
        return function.signature.returnClause?.type.is(OptionalTypeSyntax.self) == true
      }
      if let property = current.as(PatternBindingSyntax.self) {
        return property.typeAnnotation?.type.is(OptionalTypeSyntax.self) == true
      }
      if let accessor = current.as(SubscriptDeclSyntax.self) {
        return accessor.returnClause.type.is(OptionalTypeSyntax.self)
      }
      parent = current.parent
    }
    return false
  }

  // MARK: - Mutants

  /// Adds a mutant with another expression in place of one.
  ///
  /// It is on one line, because the lines of the file must stay.
  private func replace(_ node: some ExprSyntaxProtocol, by other: String, showsLine: Bool = false) {
    guard !other.contains("\n") else { return }
    let new = showsLine ? "\(other), in \(line(of: node))" : other
    add(node, becomes: new, prefix: "(", infix: " ? \(other) : ", suffix: ")")
  }

  private func add(
    _ node: some SyntaxProtocol, becomes new: String, prefix: String, infix: String, suffix: String
  ) {
    found.append(
      Mutant(
        file: file, start: start(of: node), end: node.endPositionBeforeTrailingTrivia.utf8Offset,
        line: lineNumber(of: node),
        old: oneLine(node), new: new, prefix: prefix, infix: infix, suffix: suffix))
  }

  private func start(of node: some SyntaxProtocol) -> Int { node.positionAfterSkippingLeadingTrivia.utf8Offset }

  private func lineNumber(of node: some SyntaxProtocol) -> Int {
    lineStarts.firstIndex { $0 > start(of: node) } ?? lineStarts.count
  }

  private func line(of node: some SyntaxProtocol) -> String {
    lines[lineNumber(of: node) - 1].trimmingPrefix { $0 == " " }.description
  }

  private func oneLine(_ node: some SyntaxProtocol) -> String {
    node.trimmedDescription.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }
}
