//! Plain answers to questions that no tool answers: refusals and explanations that talk about the
//! question, the tools and their parameters without calling anything.

use super::data::Item;

/// QUESTION, TOOL, DOES (its description), PARAMETER and OTHER are filled in.
const TEMPLATES: &[&str] = &[
    "I'm sorry, but none of the available functions can answer this question.",
    "I can't answer that with the tools that I have. The function `TOOL` does something else: DOES",
    "The only tool here is TOOL, and it needs PARAMETER, which the question does not give.",
    "You asked: \"QUESTION\" The available tool, `TOOL`, is not meant for that.",
    "None of the provided functions fits. `TOOL` takes `PARAMETER` and `OTHER`, but the question is about something else.",
    "To use `TOOL` I would need a value for `PARAMETER`. Could you give me one?",
    "I don't have a tool for this. If you want, I can explain how `TOOL` works instead.",
    "The function TOOL(PARAMETER, OTHER) is for another purpose. DOES",
    "No function call is needed here. Here is a general explanation of the matter.",
    "That is outside of what I can look up. I won't call `TOOL` because it can not help here.",
    "It looks like the question \"QUESTION\" can't be answered by `TOOL`.",
    "Unfortunately, TOOL only does this: DOES So I can't help with the request itself.",
    "I could call `TOOL`, but its parameter `PARAMETER` has nothing to do with your question.",
    "If you had asked for something else, I would have used `TOOL` with `PARAMETER`.",
    "Here is what I know without any tool:\n\n1. The question is a general one.\n2. It does not need `TOOL`.\n3. An answer from memory may be out of date.",
    "| tool | parameter |\n|---|---|\n| TOOL | PARAMETER |\n\nNone of these helps with the question.",
    "The parameters of `TOOL` are:\n\n- `PARAMETER`\n- `OTHER`\n\nNeither of them matches what you asked for.",
    "A call to TOOL would look like `TOOL(PARAMETER=1)`, but that would not answer your question.",
    "For reference, the tool is defined as follows:\n\n```json\n{\"name\": \"TOOL\", \"parameters\": {\"type\": \"object\", \"properties\": {\"PARAMETER\": {\"type\": \"string\"}}}}\n```\n\nIt does not fit this question.",
    "For example, one would call it like this:\n\n```json\n{\"name\": \"TOOL\", \"arguments\": {\"PARAMETER\": \"x\"}}\n```\n\nBut this does not help here.",
    "Could you tell me more? In particular, what should `PARAMETER` be?",
    "Would you like me to use `TOOL` for something related?",
    "I was not able to find a suitable function for \"QUESTION\".",
    "The question can be answered in general terms: it depends on several things, and I would check a current source for the details.",
    "You can find this on the web, or in a library. I have no tool that searches there.",
    "Let me explain why: `TOOL` expects `PARAMETER`, and the question gives no such thing.",
    "I think there is a misunderstanding. `TOOL` was made for this: DOES",
    "QUESTION That is a good question, but I have no function for it.",
    "The answer to this is not something that TOOL, or any of its parameters (PARAMETER, OTHER), can give.",
    "I already looked at the tool list: TOOL is the closest one, and it is not close enough.",
    "Final thoughts: no tool applies, so I answer in words. The short version is that it varies.",
    "> QUESTION\n\nI can't do that with the functions at hand.",
    "Note: `TOOL` requires `PARAMETER` (required) and `OTHER` (optional). Since they are missing, no call was made.",
    "Steps that you could take yourself:\n\n1. Open a browser.\n2. Search for the subject of your question.\n3. Read the first few results.",
    "As an assistant with only `TOOL`, I have to decline. Please provide a function that fits.",
    "In Python you would write:\n\n```python\nresult = TOOL(PARAMETER=\"value\")\nprint(result)\n```\n\nThis does not answer the question, though.",
];

/// All templates, filled with this item.
pub(crate) fn answers(item: &Item) -> Vec<String> {
    let tool = &item.tools[0];
    let name = tool["name"].as_str().unwrap_or("the tool");
    let does = tool["description"].as_str().unwrap_or("");
    let mut parameters = tool["parameters"]["properties"]
        .as_object()
        .into_iter()
        .flat_map(|properties| properties.keys());
    let first = parameters.next().map_or("input", String::as_str);
    let second = parameters.next().map_or("options", String::as_str);
    TEMPLATES
        .iter()
        .map(|template| {
            template
                .replace("QUESTION", &item.question)
                .replace("TOOL", name)
                .replace("DOES", does)
                .replace("PARAMETER", first)
                .replace("OTHER", second)
        })
        .collect()
}
