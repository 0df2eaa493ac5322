package dev.repertoire.client;

import dev.repertoire.v1.CallToolResponse;
import java.util.Map;

/**
 * What a tool answered.
 *
 * @param text the result for a reader
 * @param structured the result for programs; null: there is none
 * @param called all that the server answered
 */
public record Result(String text, Map<String, Object> structured, CallToolResponse called) {}
